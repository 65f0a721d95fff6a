package main

import (
	"bufio"
	"cmp"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// office is a real HTTP proxy on loopback. It connects all clients to one server,
// whatever they ask for, and records their requests.
type office struct {
	to    string // address of the server; if it is not an address, a status with which to refuse
	mu    sync.Mutex
	asked []string
}

func (o *office) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	o.asked = append(o.asked, r.Method+" "+r.RequestURI)
	o.mu.Unlock()
	if status, err := strconv.Atoi(o.to); err == nil {
		http.Error(rw, "no", status)
		return
	}
	out, err := net.Dial("tcp", o.to)
	if err != nil || r.Method != http.MethodConnect {
		http.Error(rw, "no", http.StatusForbidden)
		return
	}
	defer out.Close()
	conn, buffered, err := rw.(http.Hijacker).Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprint(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(out, bufio.NewReader(buffered)); out.Close() })
	both.Go(func() { _, _ = io.Copy(conn, out); conn.Close() })
	both.Wait()
}

// offices are the proxies that startProxy has started, by test and name.
var offices sync.Map

type officeKey struct {
	ts   *testscript.TestScript
	name string
}

// startProxy starts a proxy that leads to the server of a URL, or answers with a
// status, and puts its own URL into a variable:
//
//	proxy NAME URL|STATUS
func startProxy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: proxy NAME URL")
	}
	to, err := url.Parse(args[1])
	ts.Check(err)
	o := &office{to: cmp.Or(to.Host, to.Path)}
	server := httptest.NewServer(o)
	ts.Defer(server.Close)
	ts.Setenv(args[0], server.URL)
	offices.Store(officeKey{ts, args[0]}, o)
}

// proxied fails unless a proxy was asked for exactly these since it was last
// looked at:
//
//	proxied NAME HOST:PORT...
func proxied(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: proxied NAME HOST:PORT...")
	}
	v, ok := offices.Load(officeKey{ts, args[0]})
	if !ok {
		ts.Fatalf("there is no proxy %s", args[0])
	}
	o := v.(*office)
	o.mu.Lock()
	defer o.mu.Unlock()
	var want []string
	for _, target := range args[1:] {
		want = append(want, "CONNECT "+target)
	}
	if strings.Join(o.asked, ", ") != strings.Join(want, ", ") {
		ts.Fatalf("%s was asked for %q, want %q", args[0], o.asked, want)
	}
	o.asked = nil
}

// secureSite starts a site that speaks TLS as a host, and writes the authority
// that says so into a file; its real address is put into SECURE:
//
//	securesite HOST FILE [DIRECTORY]
func secureSite(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 || len(args) > 3 {
		ts.Fatalf("usage: securesite HOST FILE [DIRECTORY]")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{args[0]}, NotBefore: time.Unix(0, 0), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	ts.Check(err)
	s := siteOf(ts, args[2:])
	server := httptest.NewUnstartedServer(s)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that do not trust it report an error
	server.StartTLS()
	ts.Defer(server.Close)
	ts.Setenv("SECURE", server.URL)
	sites.Store(ts, s)
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
}
