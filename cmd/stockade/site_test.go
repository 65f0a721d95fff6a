package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// site is a real HTTP server on loopback that repeats the header X-Key, behind
// "got ", and counts. What is asked for /away is redirected to 127.0.0.2, and
// for /elsewhere to https://elsewhere.example. It has the files of a directory, if one is named.
type site struct {
	asked atomic.Int64
	key   atomic.Value // the header of the last request
	files string
}

func (s *site) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	s.asked.Add(1)
	s.key.Store(r.Header.Get("X-Key"))
	if r.URL.Path == "/away" {
		http.Redirect(rw, r, strings.Replace("http://"+r.Host+"/", "127.0.0.1", "127.0.0.2", 1), http.StatusTemporaryRedirect)
		return
	}
	if r.URL.Path == "/elsewhere" {
		http.Redirect(rw, r, "https://elsewhere.example/", http.StatusFound)
		return
	}
	if s.files != "" {
		http.FileServer(http.Dir(s.files)).ServeHTTP(rw, r)
		return
	}
	fmt.Fprint(rw, "got ", r.Header.Get("X-Key"))
}

// sites maps a test to the server that serveSite has started for it.
var sites sync.Map

// serveSite starts a site, and puts its URL into SITE and its host into SITE_HOST:
//
//	site [DIRECTORY]
func serveSite(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) > 1 {
		ts.Fatalf("usage: site [DIRECTORY]")
	}
	s := siteOf(ts, args)
	server := httptest.NewServer(s)
	ts.Defer(server.Close)
	ts.Setenv("SITE", server.URL)
	ts.Setenv("SITE_HOST", server.Listener.Addr().String())
	sites.Store(ts, s)
}

// siteOf is a site with the files of a directory, where one is named.
func siteOf(ts *testscript.TestScript, dir []string) *site {
	s := new(site)
	for _, d := range dir {
		s.files = ts.MkAbs(d)
	}
	return s
}

// asked fails unless there were so many requests to the site, and the last one had a
// key, where one is named:
//
//	asked N [KEY]
func asked(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: asked N [KEY]")
	}
	s, ok := sites.Load(ts)
	if !ok {
		ts.Fatalf("there is no site")
	}
	if n := s.(*site).asked.Load(); fmt.Sprint(n) != args[0] {
		ts.Fatalf("there were %d requests, want %s", n, args[0])
	}
	if key, _ := s.(*site).key.Load().(string); len(args) == 2 && key != args[1] {
		ts.Fatalf("the key of the last request was %q, want %q", key, args[1])
	}
}

// fetching are modules whose tool gets a URL, that of the site or its argument
// {"p":"URL"}, and returns the body of the answer, or the text of the error. Two send
// the secret TOKEN along, or nothing if they do not get it. One of them leaves out the
// first six characters: what a redactor does not look for behind it.
func fetching(url, host string) map[string]wasmtest.ToolOptions {
	const (
		base                   = wasmtest.ScratchBase + 8192
		header, token, answer  = base, base + 64, base + 128
		method, name, key, at  = base + 256, base + 264, base + 272, base + 512
		list                   = wasmtest.ScratchBase + 24
		fetch, placeholder     = 0, 1
		bodyAt, textAt, pieces = 28, 16, 4
	)
	join := func(pieces ...[]byte) []byte { return bytes.Join(pieces, nil) }
	words := func(words ...uint32) (out []byte) {
		for _, w := range words {
			out = binary.LittleEndian.AppendUint32(out, w)
		}
		return out
	}
	params := func(n int) (types []wasmtest.ValType) {
		for range n {
			types = append(types, wasmtest.I32)
		}
		return types
	}
	// A pointer or length of the answer, of its body or of the text of its error.
	part := func(offset uint32) []byte {
		return join(wasmtest.I32Const(answer), wasmtest.I32Load(bodyAt+offset), wasmtest.I32Const(answer), wasmtest.I32Load(textAt+offset),
			wasmtest.I32Const(answer), wasmtest.I32Load8U(0), wasmtest.I32Eqz(), wasmtest.Select())
	}
	call := func(url []byte, headers, skip int32) []byte {
		code := join(wasmtest.I32Const(method), wasmtest.I32Const(3), url)
		for _, v := range []int32{header, headers, 0, 0, 0, 0, 0, 0, 0, answer} {
			code = append(code, wasmtest.I32Const(v)...)
		}
		image := join(words(wasmtest.ResultOK, list, 1, 0, 0, 0), words(wasmtest.ContentText, 0, 0, 0, 0, 0, 0, 0, 0))
		return join(code, wasmtest.Call(fetch), wasmtest.StoreBytes(wasmtest.ScratchBase, image),
			wasmtest.I32Const(list), part(0), wasmtest.I32Const(skip), wasmtest.I32Add(), wasmtest.I32Store(pieces),
			wasmtest.I32Const(list), part(4), wasmtest.I32Const(skip), wasmtest.I32Sub(), wasmtest.I32Store(pieces+4),
			wasmtest.I32Const(wasmtest.ScratchBase))
	}
	withToken := join(wasmtest.I32Const(key), wasmtest.I32Const(5), wasmtest.I32Const(token), wasmtest.Call(placeholder),
		wasmtest.I32Const(header), wasmtest.I32Const(token), wasmtest.I32Load(4), wasmtest.I32Store(8),
		wasmtest.I32Const(header), wasmtest.I32Const(token), wasmtest.I32Load(8), wasmtest.I32Const(0), wasmtest.I32Const(token), wasmtest.I32Load8U(0), wasmtest.I32Eqz(), wasmtest.Select(), wasmtest.I32Store(12))
	options := func(secrets string, code []byte) wasmtest.ToolOptions {
		imports := []wasmtest.Import{{Module: "stockade:tool/http@0.1.0", Name: "fetch", Params: params(14)}}
		if secrets != "" {
			imports = append(imports, wasmtest.Import{Module: "stockade:tool/secrets@0.1.0", Name: "placeholder", Params: params(3)})
		}
		return wasmtest.ToolOptions{
			Manifest: `{"abi":"stockade:tool@0.1.0","name":"probe","tools":[{"name":"probe","description":"A tool made for a test.",` +
				`"parameters":{"type":"object"},"capabilities":{"network":"http"` + secrets + `}}]}`,
			Call: code,
			Data: []wasmtest.Segment{
				{Offset: header, Bytes: words(name, 5)}, {Offset: method, Bytes: []byte("GET")}, {Offset: name, Bytes: []byte("X-Key")},
				{Offset: key, Bytes: []byte("TOKEN")}, {Offset: at, Bytes: []byte(url)},
			},
			Imports: imports,
			Edit:    func(b *wasmtest.Builder) { b.ExportFunc("cabi_realloc", uint32(len(imports))) },
		}
	}
	fixed := join(wasmtest.I32Const(at), wasmtest.I32Const(int32(len(url))))
	// That of {"p":"URL"}.
	argument := join(wasmtest.LocalGet(wasmtest.ParamArgs), wasmtest.I32Const(6), wasmtest.I32Add(), wasmtest.LocalGet(wasmtest.ParamArgsLen), wasmtest.I32Const(8), wasmtest.I32Sub())
	secret := `,"secrets":[{"name":"TOKEN","hosts":["` + host + `"],"header":"X-Key"}]`
	unasked := options("", call(fixed, 0, 0))
	unasked.Manifest = strings.Replace(unasked.Manifest, `"network":"http"`, "", 1)
	return map[string]wasmtest.ToolOptions{
		"fetching":                options("", call(fixed, 0, 0)),
		"fetching its argument":   options("", call(argument, 0, 0)),
		"fetching unasked":        unasked,
		"fetching with TOKEN":     options(secret, join(withToken, call(fixed, 1, 6))),
		"fetching all with TOKEN": options(secret, join(withToken, call(fixed, 1, 0))),
	}
}
