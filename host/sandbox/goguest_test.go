package sandbox_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/stockade-dev/stockade/host/jail"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/redact"
	"github.com/stockade-dev/stockade/host/sandbox"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/session"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/toolstore"
)

// tck returns the built guest of the conformance tests. The first build takes a minute; later
// ones use the toolchain's cache.
var tck = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "stockade-tck-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "tck.wasm")
	cmd := exec.Command("go", "build", "-buildvcs=false", "-buildmode=c-shared", "-trimpath", "-ldflags=-s -w", "-o", file, "./guests/tck")
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the guest: %w\n%s", err, out)
	}
	return os.ReadFile(file)
})

// TestGoGuest runs a guest that the Go toolchain has built, whose runtime manages memory,
// stacks and start-up in its own way.
func TestGoGuest(t *testing.T) {
	bytes, err := tck()
	if err != nil {
		t.Fatal(err)
	}
	mod := module(bytes)
	box := newBox(t, sandbox.Options{CacheDir: sharedCache, Services: services.Set{Exec: jail.New(jail.Options{})}})

	t.Run("echo of every length", func(t *testing.T) {
		var lengths []int
		for n := range 64 {
			lengths = append(lengths, n+1)
			if n%8 == 0 {
				lengths = append(lengths, 1<<20-n)
			}
		}
		queue := make(chan int)
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				for n := range queue {
					text := strings.Repeat("0123456789abcdef-", n/17+1)[:n]
					args := marshal(t, map[string]string{"text": text})
					r, err := granted(t, mod, ask{id: strings.Repeat("i", n%64+1), tool: "echo", args: args,
						limits: policy.Limits{OutputBytes: 4 << 20}}).run(t.Context(), box)
					want := marshal(t, struct {
						Text   string `json:"text"`
						Length int    `json:"length"`
						SHA256 string `json:"sha256"`
					}{text, n, fmt.Sprintf("%x", sha256.Sum256([]byte(text)))})
					if err != nil || string(r.Output) != want {
						t.Errorf("%d bytes came back as %.100s: %s, %v", n, r.Output, r.Summary(), err)
					}
				}
			})
		}
		for _, n := range lengths {
			queue <- n
		}
		close(queue)
		wg.Wait()
	})

	t.Run("what a call carries", func(t *testing.T) {
		dir := t.TempDir()
		for _, id := range []string{"1", "call-23", strings.Repeat("c", 31), strings.Repeat("d", 64)} {
			r := granted(t, mod, ask{id: id, tool: "context", cwd: dir,
				mounts: []policy.Mount{{Host: dir}}, caps: tool.Capabilities{Files: tool.FilesRead}}).mustRun(t, box)
			want := fmt.Sprintf(`{"id":%q,"dir":%q,"locale":"","has_deadline":true,"getwd":%q,"env":`, id, dir, dir)
			if r.Err != nil || !strings.HasPrefix(string(r.Output), want) {
				t.Errorf("it got %s %s, want %s", r.Output, r.Summary(), want)
			}
		}
	})

	t.Run("a panic is a failed result", func(t *testing.T) {
		r := granted(t, mod, ask{tool: "panic", args: `{"text":"oh no"}`}).mustRun(t, box)
		failure(t, r, tool.CodeFailed, tool.InternalError, "oh no")
	})

	t.Run("every error keeps its type", func(t *testing.T) {
		for kind, want := range map[string]struct {
			code tool.Code
			typ  tool.ErrorType
		}{
			"invalid-input": {tool.CodeInvalidArgs, tool.ValidationFailed},
			"not-found":     {tool.CodeNotFound, tool.NotFound},
			"denied":        {tool.CodeDenied, tool.PermissionDenied},
			"io":            {tool.CodeIO, tool.IOError},
			"parse":         {tool.CodeParse, tool.ParseError},
			"unavailable":   {tool.CodeUnavailable, tool.IOError},
			"cancelled":     {tool.CodeCancelled, tool.InternalError},
			"failed":        {tool.CodeFailed, tool.InternalError},
			"plain":         {tool.CodeFailed, tool.InternalError},
			"missing-file":  {tool.CodeDenied, tool.PermissionDenied}, // it is outside of what is mounted
		} {
			r := granted(t, mod, ask{tool: "fail", args: marshal(t, map[string]string{"kind": kind, "text": "because"})}).mustRun(t, box)
			if r.Err == nil || r.Err.Code != want.code || r.Err.Type != want.typ {
				t.Errorf("%s became %s", kind, r.Summary())
			} else if kind != "cancelled" && kind != "missing-file" && r.Err.Message != "because" {
				t.Errorf("%s says %q", kind, r.Err.Message)
			}
		}
		failure(t, granted(t, mod, ask{tool: "no_such"}).mustRun(t, box), tool.CodeUnknownTool, tool.NotFound, "no_such")
	})

	t.Run("memory", func(t *testing.T) {
		a := ask{tool: "alloc", args: `{"bytes":1048576,"rounds":100}`, limits: policy.Limits{MemoryBytes: 64 << 20}}
		if r := granted(t, mod, a).mustRun(t, box); r.Err != nil || r.Usage.PeakMemoryBytes > 64<<20 || r.Usage.PeakMemoryBytes < 4<<20 {
			t.Errorf("100 MiB in pieces: %s, peak %d MiB", r.Summary(), r.Usage.PeakMemoryBytes>>20)
		}
		a.args = `{"bytes":1048576,"rounds":100,"keep":100}`
		failure(t, granted(t, mod, a).mustRun(t, box), tool.CodeMemory, tool.InternalError, "raise tool_memory")
	})

	t.Run("log", func(t *testing.T) {
		j := granted(t, mod, ask{tool: "log", args: `{"text":"look"}`})
		var levels []string
		r, err := j.runTelling(t.Context(), box, func(p tool.Progress) { levels = append(levels, p.Level+" "+p.Message) })
		if got := strings.Join(levels, ","); err != nil || r.Err != nil || got != "trace look,debug look,info look,warn look,error look" {
			t.Errorf("the log is %s; %s, %v", got, r.Summary(), err)
		}
	})

	t.Run("every host function", func(t *testing.T) {
		dir := t.TempDir()
		args := marshal(t, map[string]string{"fetch": "https://example.com", "key": "k", "value": "v", "secret": "s",
			"command": "echo out; echo err >&2; exit 3", "path": dir})
		j := granted(t, mod, ask{tool: "host", args: args, cwd: dir, mounts: []policy.Mount{{Host: dir}},
			caps: tool.Capabilities{Files: tool.FilesRead, Exec: "command"}})
		var said []tool.Progress
		r, err := j.runTelling(t.Context(), box, func(p tool.Progress) { said = append(said, p) })
		if err != nil || r.Err != nil {
			t.Fatalf("%v, %s", err, r.Summary())
		}
		var out struct {
			Cancelled bool
			File      string
			Looked    string
			Exec      struct {
				Code   int `json:"exit_code"`
				Stdout string
				Stderr string
			}
			Errors map[string]string
		}
		if err := json.Unmarshal(r.Output, &out); err != nil {
			t.Fatal(err)
		}
		if out.Cancelled || out.File != "dir" || out.Looked != "dir" || out.Exec.Code != 3 || out.Exec.Stdout != "out\n" || out.Exec.Stderr != "err\n" {
			t.Errorf("it got %s", r.Output)
		}
		for _, what := range []string{"fetch", "get", "set", "keys", "delete", "placeholder"} {
			if !strings.Contains(out.Errors[what], "not granted") {
				t.Errorf("%s says %q", what, out.Errors[what])
			}
		}
		if len(out.Errors) != 6 || len(said) != 2 || said[1].Message != "half" || said[1].Done != 1 || *said[1].Total != 2 {
			t.Errorf("errors %v, reports %+v", out.Errors, said)
		}
	})

	t.Run("a store", func(t *testing.T) {
		const secret = "hunter2-hunter2"
		known := new(redact.Redactor)
		known.Add(secret)
		box := newBox(t, sandbox.Options{CacheDir: sharedCache, Redact: known})
		stores := toolstore.New(policy.Limits{StoreBytes: 100_000, SessionStoreBytes: 1 << 20}, time.Now)
		type keeps struct {
			Keys           []string
			Values, Errors map[string]string
		}
		call := func(args map[string]any) (out keeps) {
			t.Helper()
			j := granted(t, mod, ask{tool: "keep", args: marshal(t, args), caps: tool.Capabilities{Store: true}})
			view, err := stores.Open(t.Context(), mod)
			if err != nil {
				t.Fatal(err)
			}
			defer view.Close()
			j.grant = j.grant.WithStore(view)
			r := j.mustRun(t, box)
			if r.Err != nil {
				t.Fatal(r.Err)
			}
			if body, any := view.Changes("keep"); any {
				stores.Fold(session.Seal(session.NewDraft(session.TypeToolStoreChanges, 0, 0, "", body), 1, time.Now(), [32]byte{}, [32]byte{}))
			}
			if err := json.Unmarshal(r.Output, &out); err != nil {
				t.Fatal(err)
			}
			return out
		}
		type values = map[string]string
		many := strings.Repeat("k", 256)
		for _, c := range []struct {
			what string
			args map[string]any
			want keeps
		}{
			{"nothing", map[string]any{}, keeps{Values: values{}}},
			{"what it sets", map[string]any{"set": values{"b": "2", "a": "", many: "3"}}, keeps{[]string{"a", "b", many}, values{"a": "", "b": "2", many: "3"}, nil}},
			{"what another call has set", map[string]any{"delete": []string{many, "none"}, "limit": 1}, keeps{[]string{"a"}, values{"a": ""}, nil}},
			{"by a prefix", map[string]any{"set": values{"a/1": "x"}, "prefix": "a/"}, keeps{[]string{"a/1"}, values{"a/1": "x"}, nil}},
			{"what it may not", map[string]any{"prefix": "z", "set": values{
				"": "x", many + "k": "x", "large": strings.Repeat("x", 64<<10+1), "of " + secret: "x",
			}}, keeps{nil, values{}, values{
				"": "store failed: the key is empty", many + "k": "store failed: the key has 257 bytes; it may have 256",
				"large": "store is full: the limit is 65536 bytes", "of " + known.Text(secret): "store failed: the key holds a secret",
			}}},
			{"more than there is room", map[string]any{"prefix": "r", "set": values{"r1": strings.Repeat("x", 60_000), "r2": strings.Repeat("x", 60_000)}, "delete": []string{"r1"}},
				keeps{nil, values{}, values{"r2": "store is full: the limit is 100000 bytes"}}},
			{"a secret", map[string]any{"prefix": "s", "set": values{"s": "it is " + secret}}, keeps{[]string{"s"}, values{"s": "it is " + known.Text(secret)}, nil}},
		} {
			got := call(c.args)
			if diff := cmp.Diff(c.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", c.what, diff)
			}
		}
		for _, caps := range []tool.Capabilities{{}, {Store: true}} { // asked for neither, and given none
			r := granted(t, mod, ask{tool: "keep", args: "{}", caps: caps}).mustRun(t, box)
			failure(t, r, tool.CodeDenied, tool.PermissionDenied, "the key-value store is not granted to this call")
		}
	})

	t.Run("config", func(t *testing.T) {
		declared := map[string]string{"color": "red"}
		for what, c := range map[string]struct {
			origin tool.Origin
			config map[string]string
			set    map[string]map[string]string
			color  string
		}{
			"what it declares":                            {tool.OriginBuiltin, declared, nil, "red"},
			"what is set":                                 {tool.OriginBuiltin, declared, map[string]map[string]string{"tck": {"color": "blue"}}, "blue"},
			"empty, if that is set":                       {tool.OriginBuiltin, declared, map[string]map[string]string{"tck": {"color": ""}}, ""},
			"nothing of another module":                   {tool.OriginBuiltin, declared, map[string]map[string]string{"other": {"color": "blue"}}, "red"},
			"nothing that it does not declare":            {tool.OriginBuiltin, declared, map[string]map[string]string{"tck": {"other": "x"}}, "red"},
			"nothing that is set, if it is not built in":  {tool.OriginAdded, declared, map[string]map[string]string{"tck": {"color": "blue"}}, "red"},
			"nothing, if it declares nothing":             {tool.OriginBuiltin, nil, map[string]map[string]string{"tck": {"color": "blue"}}, ""},
			"what it declares, after another was told it": {tool.OriginAdded, declared, nil, "red"},
		} {
			mod := *mod
			mod.Name, mod.Origin, mod.Config = "tck", c.origin, c.config
			box := newBox(t, sandbox.Options{CacheDir: sharedCache, Config: func(module, name string) (string, bool) {
				value, ok := c.set[module][name]
				return value, ok
			}})
			for range 2 { // the second call has a snapshot
				r := granted(t, &mod, ask{tool: "config", args: "{}"}).mustRun(t, box)
				if want := fmt.Sprintf(`{"color":%q,"other":false,"before":""}`, c.color); r.Err != nil || string(r.Output) != want {
					t.Errorf("%s: it got %s %s, want %s", what, r.Output, r.Summary(), want)
				}
			}
		}
		if declared["color"] != "red" {
			t.Errorf("what is declared has become %v", declared)
		}
	})

	t.Run("digests", func(t *testing.T) {
		const nothing = `"before":["e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855","da39a3ee5e6b4b0d3255bfef95601890afd80709"]`
		for _, bytes := range []int{0, 1, 1000, 1<<20 - 1, 1 << 20, 1<<20 + 65} { // the host has its turn at each MiB
			r := granted(t, mod, ask{tool: "digest", args: fmt.Sprintf(`{"bytes":%d}`, bytes)}).mustRun(t, box)
			var out struct{ Host, Guest []string }
			if err := json.Unmarshal(r.Output, &out); err != nil || len(out.Host) != 2 || !slices.Equal(out.Host, out.Guest) || !strings.Contains(string(r.Output), nothing) {
				t.Errorf("of %d bytes: %s %s", bytes, r.Output, r.Summary())
			}
		}
	})

	t.Run("secrets", func(t *testing.T) {
		wants := tool.Capabilities{Files: tool.FilesRead, Secrets: []tool.Secret{{Name: "TOKEN"}}}
		for what, c := range map[string]struct {
			caps    tool.Capabilities
			name    string
			keeper  keeper
			nobody  bool
			got     string
			refusal string
			told    string
		}{
			"granted":       {caps: wants, name: "TOKEN", keeper: keeper{text: "stockade-secret-x"}, got: "stockade-secret-x"},
			"another":       {caps: wants, name: "OTHER", keeper: keeper{text: "no"}, refusal: "not granted"},
			"not granted":   {caps: tool.Capabilities{Files: tool.FilesRead}, name: "TOKEN", keeper: keeper{text: "no"}, refusal: "not granted"},
			"nobody has it": {caps: wants, name: "TOKEN", nobody: true, refusal: "not granted"},
			"not set":       {caps: wants, name: "TOKEN", keeper: keeper{err: &services.Error{Kind: services.NotFound, Err: errors.New("no such secret")}}, refusal: "secret is not set", told: `the secret "TOKEN" is not set: the person can set it`},
			"refused":       {caps: wants, name: "TOKEN", keeper: keeper{err: &services.Error{Kind: services.Denied, Err: errors.New("bound elsewhere")}}, refusal: "bound elsewhere"},
			"broken":        {caps: wants, name: "TOKEN", keeper: keeper{err: errors.New("the key is in /home/ada")}, refusal: "the person is told why", told: "/home/ada"},
		} {
			dir := t.TempDir()
			set := services.Set{Secrets: &c.keeper}
			if c.nobody {
				set = services.Set{}
			}
			box := newBox(t, sandbox.Options{Services: set, CacheDir: sharedCache})
			args := marshal(t, map[string]string{"fetch": "https://example.com", "key": "k", "value": "v", "secret": c.name, "command": "true"})
			var told []string
			r, err := granted(t, mod, ask{tool: "host", args: args, caps: c.caps, cwd: dir, mounts: []policy.Mount{{Host: dir}}}).runTelling(t.Context(), box, func(p tool.Progress) { told = append(told, p.Message+": "+p.Hint.String()) })
			if err != nil || r.Err != nil {
				t.Fatalf("%s: %v, %s", what, err, r.Summary())
			}
			var out struct {
				Placeholder string
				Errors      map[string]string
			}
			if err := json.Unmarshal(r.Output, &out); err != nil {
				t.Fatal(err)
			}
			if out.Placeholder != c.got || !strings.Contains(out.Errors["placeholder"], c.refusal) || strings.Contains(string(r.Output), "/home/ada") {
				t.Errorf("%s: the guest gets %s", what, r.Output)
			}
			if !strings.Contains(strings.Join(told, "; "), c.told) {
				t.Errorf("%s: the person is told %q", what, told)
			}
			if len(c.keeper.granted) != len(c.caps.Secrets) && c.got != "" || c.got == "" && c.keeper.err == nil && c.keeper.asked != 0 {
				t.Errorf("%s: the keeper was asked %d times, with %v", what, c.keeper.asked, c.keeper.granted)
			}
		}
	})

	t.Run("its manifest", func(t *testing.T) {
		m, err := box.Describe(t.Context(), mod)
		if err != nil || m.Name != "tck" || len(m.Tools) != 10 {
			t.Errorf("Describe says %+v, %v", m, err)
		}
	})
}

// keeper is a service for secrets with one answer.
type keeper struct {
	text string
	err  error

	granted []tool.Secret
	asked   int
}

func (k *keeper) Placeholders(granted []tool.Secret) services.Placeholders {
	k.granted = granted
	return keeps{k}
}

type keeps struct{ *keeper }

func (k keeps) Placeholder(context.Context, string) (string, error) {
	k.asked++
	return k.text, k.err
}

func (k keeps) Fill(_ *url.URL, h map[string][]string, _ []byte) (map[string][]string, error) {
	return h, nil
}

func marshal(t *testing.T, v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		t.Error(err)
	}
	return string(data)
}
