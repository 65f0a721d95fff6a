package jail

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/services"
)

// server answers all its connections, and counts them.
func server(t *testing.T) (addr string, connections *atomic.Int32) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	connections = new(atomic.Int32)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			connections.Add(1)
			head := make([]byte, 4096)
			_, _ = conn.Read(head)
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
			conn.Close()
		}
	}()
	return l.Addr().String(), connections
}

func TestACommandReachesGrantedHostsOnly(t *testing.T) {
	if *tier < 1 {
		return // it reaches all
	}
	granted, asked := server(t)
	other, touched := server(t)
	rule, err := network.ParseRule("http://" + granted)
	if err != nil {
		t.Fatal(err)
	}
	way, err := egress.New(egress.Options{})
	if err != nil {
		t.Fatal(err)
	}
	j := newJail(t, Options{Proxy: way})
	dir := t.TempDir()
	tries := func(addr string) string {
		host, port, _ := net.SplitHostPort(addr)
		return fmt.Sprintf(`curl -sS --max-time 5 http://%[1]s/; curl -sS --max-time 5 --noproxy '*' http://%[1]s/; env -u http_proxy curl -sS --max-time 5 http://%[1]s/; (echo >/dev/tcp/%[2]s/%[3]s) 2>&1; `, addr, host, port) +
			fmt.Sprintf(`curl -sS --max-time 5 --proxytunnel http://%s/; python3 -c 'import socket; socket.create_connection(("%s", %s))' 2>&1 | tail -1; true`, addr, host, port)
	}
	run := func(online bool, command string) services.CommandResult {
		t.Helper()
		opts := policy.Options{Mounts: []policy.Mount{{Host: dir, Write: true}}, Network: network.New([]network.Rule{rule})}
		out, err := j.Run(t.Context(), grantOf(t, dir, map[string]any{"command": command, "network": online}, opts), bash(dir, command))
		if online && policy.Tier(*tier) < 2 {
			if services.KindOf(err) != services.Denied {
				t.Errorf("where nothing confines the network, it is granted: %v", err)
			}
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if out := run(false, tries(granted)); asked.Load() != 0 || strings.Contains(string(out.Stdout), "hello") {
		t.Errorf("without a network it reaches the host: %s", describe(out))
	}
	out := run(true, tries(granted))
	if n := asked.Load(); policy.Tier(*tier) >= 2 && (n == 0 || !strings.Contains(string(out.Stdout), "hello")) {
		t.Errorf("it does not reach what was granted: %d, %s", n, describe(out))
	}
	out = run(true, tries(other))
	if touched.Load() != 0 || strings.Contains(string(out.Stdout), "hello") {
		t.Errorf("it reaches what was not granted: %s", describe(out))
	}
}

// TestWhoTriedTheNetworkIsTold: the note is for a command that failed, and connected to an
// address outside of its own network.
func TestWhoTriedTheNetworkIsTold(t *testing.T) {
	const toHost, toItself = "(: >/dev/tcp/192.0.2.7/80) 2>/dev/null", "(: >/dev/tcp/127.0.0.1/1) 2>/dev/null"
	short := policy.Limits{ExecTimeout: 300 * time.Millisecond, ExecTimeoutMax: 300 * time.Millisecond}
	for name, c := range map[string]struct {
		command string
		least   policy.Tier // at which it is told, 3 if that takes a root of its own; 0: it is not
		limits  policy.Limits
	}{
		"an address":                         {toHost + "; exit 1", 2, policy.Limits{}},
		"an address of IPv6":                 {"(: >/dev/tcp/2001:db8::1/80) 2>/dev/null; exit 1", 2, policy.Limits{}},
		"an address, until the deadline":     {toHost + "; sleep 1000", 2, short},
		"a name":                             {"getent ahosts nobody.example", 3, policy.Limits{}},
		"a tool that is told to be offline":  {"echo 'go: example.com/x: module lookup disabled by GOPROXY=off'; exit 1", 2, policy.Limits{}},
		"an address, and it succeeded":       {toHost + "; true", 0, policy.Limits{}},
		"itself":                             {toItself + "; exit 1", 0, policy.Limits{}},
		"itself, by IPv6":                    {"(: >/dev/tcp/::1/1) 2>/dev/null; exit 1", 0, policy.Limits{}},
		"itself, by name":                    {"(: >/dev/tcp/localhost/1) 2>/dev/null; getent ahosts localhost; exit 1", 0, policy.Limits{}},
		"nobody":                             {"exit 1", 0, policy.Limits{}},
		"nobody, and it speaks of a network": {"echo Network is unreachable; exit 1", 0, policy.Limits{}},
	} {
		t.Run(name, func(t *testing.T) {
			out := run(t, t.TempDir(), c.command, c.limits)
			want := c.least > 0 && policy.Tier(*tier) >= min(c.least, 2) && (c.least < 3 || !*noRoot)
			if told := slices.Contains(out.Notes, noNetworkNote); told != want {
				t.Errorf("%s, %q", describe(out), out.Notes)
			}
		})
	}
}
