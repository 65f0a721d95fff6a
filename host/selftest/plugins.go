package selftest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/selftest/machine"
	"github.com/stockade-dev/stockade/host/tool"
	w "github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// These attacks use what an Extism host gives its plugins: blocks of memory in the host,
// variables, configuration, requests.

// block copies a text into a new block and returns its offset, for use as an operand.
func (s *script) block(text string) cell {
	t := s.text(text)
	return s.add("block", t.at, t.n).resultCell()
}

// alloc allocates a block of n bytes and returns its offset.
func (s *script) alloc(n int64) cell { return s.add("extism.alloc", n).resultCell() }

// resultCell returns the result of the call as an operand of later calls.
func (c *call) resultCell() cell { return cell(c.result) }

// setOutput ends a plugin with n bytes from an offset as its output.
func (s *script) setOutput(offset any, n int64) {
	s.add("extism.output_set", offset, n)
	s.add("leave", 0)
}

// fail ends a plugin with an error of this text.
func (s *script) fail(text cell) {
	s.add("extism.error_set", text)
	s.add("leave", 1)
}

func pluginOutputAttacks() []Attack {
	limits := Guest{Limits: policy.Limits{OutputBytes: outputLimit, LogBytes: logLimit}}
	lists := limits
	lists.machineOptions = &machine.Options{ListsTools: true}
	return []Attack{
		limitAttack("output-100-mb", "Put out 100 MB.", limits, func(s *script) { s.setOutput(s.alloc(100<<20), 100<<20) }, tool.CodeBadABI, "more than the limit").forKinds(plugin),
		limitAttack("output-nested", "Put out JSON that is nested nearly ten thousand deep.", limits, func(s *script) {
			const deep = 9_990
			s.setOutput(s.block(`{"a":`+strings.Repeat("[", deep)+strings.Repeat("]", deep)+`}`), 2*deep+6)
		}, tool.CodeBadABI, "nests deeper").forKinds(plugin),
		limitAttack("output-taken-back", "Put out a block, and take back all memory.", Guest{}, func(s *script) {
			s.add("extism.output_set", s.block("text"), int64(4))
			s.add("extism.reset")
			s.add("extism.output_set", s.alloc(8), int64(8))
			s.add("extism.reset")
			s.setOutput(uint64(64), 8)
		}, tool.CodeBadABI, "outside").forKinds(plugin),
		// Plugins of hyper-mcp answer with pieces, like servlets of mcp.run.
		limitAttack("pieces-flood", "Answer with thirty thousand pieces, as a plugin that lists its tools.", lists, func(s *script) {
			s.answer(`{"content":[` + strings.Repeat(`{},`, 30_000) + `{}]}`)
		}, tool.CodeBadABI, "pieces").forKinds(plugin),
		limitAttack("pieces-nested", "Answer with JSON that is nested nearly ten thousand deep, as a plugin that lists its tools.", lists, func(s *script) {
			s.answer(`{"structuredContent":{"a":` + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + `}}`)
		}, tool.CodeBadABI, "nests deeper").forKinds(plugin),
		limitAttack("pieces-not-text", "Answer with bytes that are not text, as a plugin that lists its tools.", lists, func(s *script) {
			s.answer("{\"content\":[{\"type\":\"text\",\"text\":\"\xff\xfe\"}]}")
		}, tool.CodeBadABI, "not text").forKinds(plugin),
		{Name: "notice-flood", Description: "Report progress and log fifteen thousand times, as a plugin of hyper-mcp.", kinds: plugin, run: noticeFlood},
		{Name: "output-not-text", Description: "Put out bytes that are not text.", kinds: plugin, run: outputNotText},
		{Name: "output-long", Description: "Put out more text than the model is to get.", kinds: plugin, run: outputLong},
		{Name: "failure-long", Description: "Fail with an error of a megabyte.", kinds: plugin, run: failureLong},
		{Name: "message-long", Description: "Log a message of a megabyte.", kinds: plugin, run: messageLong},
	}
}

// noticeFlood uses the functions that hyper-mcp adds to those of Extism.
func noticeFlood(t *trial) (string, error) {
	const times, most = 15_000, 10_000
	s := &script{}
	progress, message := s.text(`{"progress":1,"message":"x"}`), s.text(`{"level":"info","data":"`+strings.Repeat("x", 100)+`"}`)
	block := s.add("block", progress.at, progress.n)
	s.add("extism.notify_progress", block.resultCell())
	other := s.add("block", message.at, message.n)
	s.add("extism.notify_logging_message", other.resultCell())
	s.repeat(block, times-1)
	s.answer(`{"content":[{"type":"text","text":"all was told"}]}`)
	o, err := t.runScript(Guest{machineOptions: &machine.Options{ListsTools: true}, Limits: policy.Limits{LogBytes: logLimit}}, s)
	switch {
	case err != nil:
		return "", err
	case o.Transcript.Reports > most || o.Transcript.Bytes > logLimit+most+1024:
		return "", fmt.Errorf("%d reports and %d messages came through", o.Transcript.Reports, o.Transcript.Messages)
	case !bytes.Contains(o.Result.Output, []byte("all was told")) || o.Transcript.Reports == 0 || o.Transcript.Messages == 0:
		return "", newUntried("the guest did not get to the end: %s", o.Result.Summary())
	}
	t.detail = fmt.Sprintf("%d reports and %d messages came through", o.Transcript.Reports, o.Transcript.Messages)
	return "progress: the reports of a call", nil
}

// answer ends a plugin with a text as its output.
func (s *script) answer(text string) { s.setOutput(s.block(text), int64(len(text))) }

func outputNotText(t *trial) (string, error) {
	s := &script{}
	s.setOutput(s.block("\xff\xfe\xc0\xaftext"), 8)
	o, err := t.runScript(Guest{}, s)
	switch {
	case err != nil:
		return "", err
	case o.Result.Err != nil:
		return "", newUntried("something else stopped it: %s", o.Result.Err.Message)
	case !json.Valid(o.Result.Envelope()) || bytes.Contains(o.Result.Output, []byte("\xff")):
		return "", errors.New("the result is no text")
	}
	return "output: what is no text is only named", nil
}

// filledBlock adds a block of n bytes of text.
func (s *script) filledBlock(n int64) cell {
	at := s.alloc(n)
	s.add("fill", machine.BufferBase, int('x'), machine.BufferSize)
	to, left := s.words(0), int(n/machine.BufferSize)
	s.add("store", to.at, at)
	put := s.add("block.put", cell(to.at), machine.BufferBase, machine.BufferSize)
	s.add("add", to.at, machine.BufferSize)
	s.repeat(put, left-1)
	return at
}

func outputLong(t *trial) (string, error) {
	const length = 1 << 20
	s := &script{}
	s.setOutput(s.filledBlock(length), length)
	o, err := t.runScript(Guest{Limits: policy.Limits{OutputBytes: outputLimit}}, s)
	return t.checkCut(o.Result, string(o.Result.Output), err)
}

func failureLong(t *trial) (string, error) {
	s := &script{}
	s.fail(s.filledBlock(1 << 20))
	o, err := t.runScript(Guest{Limits: policy.Limits{OutputBytes: outputLimit, Fuel: 1 << 40}}, s)
	return t.checkCutFailure(o.Result, err)
}

// checkCutFailure is checkCut for the text of a failure.
func (t *trial) checkCutFailure(r tool.Result, err error) (string, error) {
	text := ""
	if e := r.Err; err == nil && e != nil && e.Code == tool.CodeFailed {
		text, r.Err = e.Message+e.Stdout+e.Stderr, nil
	}
	return t.checkCut(r, text, err)
}

// checkCut checks how many bytes of a long text of x came through.
func (t *trial) checkCut(r tool.Result, text string, err error) (string, error) {
	switch {
	case err != nil:
	case r.Err != nil:
		err = newUntried("something else stopped it: %s", clip(r.Err.Message, 120))
	case !strings.Contains(text, "xxxx"):
		err = newUntried("the text did not come back")
	}
	return t.checkFew(len(text), 1, outputLimit+100, "bytes", fmt.Sprintf("output: cut at %d KiB", outputLimit>>10), err)
}

func messageLong(t *trial) (string, error) {
	s := &script{}
	say := s.add("extism.log_info", s.filledBlock(1<<20))
	o, err := t.runToEnd(Guest{Limits: policy.Limits{LogBytes: logLimit, Fuel: 1 << 40}}, s, say, 1)
	return t.checkFew(o.Transcript.Bytes, 1, longestMessage, "bytes", "log: the length of a message", err)
}

func pluginMemoryAttacks() []Attack {
	const limit = 16 << 20
	small := Guest{Limits: policy.Limits{MemoryBytes: limit}}
	blocks := func(n int64, times int) func(*script) {
		return func(s *script) {
			block := s.add("extism.alloc", n)
			s.repeat(block, times)
		}
	}
	return []Attack{
		limitAttack("block-huge", "Ask for a block of an exbibyte.", small, blocks(1<<60, 1), tool.CodeMemory, "memory").forKinds(plugin),
		limitAttack("block-overflow", "Ask for a block whose size is zero when it is rounded up.", small, blocks(-1, 1), tool.CodeMemory, "memory").forKinds(plugin),
		limitAttack("block-flood", "Ask for blocks until the host has no memory left.", small, blocks(1<<20, 4096), tool.CodeMemory, "memory").forKinds(plugin),
		limitAttack("small-block-flood", "Ask for blocks of a byte until the host has no memory left for its notes.", Guest{Limits: policy.Limits{MemoryBytes: limit, Fuel: 1 << 40}},
			blocks(1, 1<<24), tool.CodeMemory, "memory").forKinds(plugin),
		{Name: "blocks-copied", Description: "Have the host copy all blocks for each further one.", kinds: plugin, run: blocksCopied},
		{Name: "blocks-of-all-calls", Description: "Use more memory of the host in two calls at the same time than all calls may have.", kinds: plugin, run: blocksOfAllCalls},
		{Name: "blocks-kept", Description: "Use up the memory of all calls for good by crashing with blocks of it.", kinds: plugin, run: blocksKept},
		limitAttack("variable-flood", "Keep variables until the host has no memory left.", Guest{}, func(s *script) {
			name := s.text("name0000")
			first := s.add("add", name.at+4, 1) // changes the name
			key := s.add("block", name.at, name.n)
			s.add("extism.var_set", key.resultCell(), s.alloc(64<<10))
			s.repeat(first, 1000)
		}, tool.CodeFailed, "variables").forKinds(plugin),
	}
}

// blocksCopied asks for blocks of 64 KiB up to 24 MiB. A host that doubles its memory at
// 16 MiB has no room for twice as many.
func blocksCopied(t *trial) (by string, err error) {
	const limit, most = 24 << 20, 512 << 20
	err = requireFew(func(m *runtime.MemStats) uint64 { return m.TotalAlloc }, most, func() error {
		s := &script{}
		s.repeat(s.add("extism.alloc", int64(64<<10)), 1000)
		by, err = t.runStopped(Guest{Limits: policy.Limits{MemoryBytes: limit}}.withScript(s), "memory", tool.CodeMemory)
		return err
	})
	return by, err
}

// blocksOfAllCalls makes one guest wait with its blocks until another has asked for as
// many.
func blocksOfAllCalls(t *trial) (string, error) {
	const more = 14 << 20
	first, second := &script{}, &script{}
	first.alloc(more)
	first.log("asked")
	second.alloc(more)
	var by string
	g := Guest{SharedMemoryBytes: t.sharedBytes(sharedMemory + 3*page)}
	_, err := t.reportWhile(g, first, func() (err error) {
		by, err = t.runStopped(g.withScript(second), "", tool.CodeMemory)
		return err
	})
	return by, err
}

func blocksKept(t *trial) (string, error) {
	alone := t.sharedBytes(sharedMemory + 2*page)
	for range 6 {
		s := &script{}
		s.alloc(10 << 20)
		s.add("trap")
		if err := t.runToCrash(Guest{SharedMemoryBytes: alone}, s); err != nil {
			return "", err
		}
	}
	s := &script{}
	s.alloc(10 << 20)
	if o, err := t.runScript(Guest{SharedMemoryBytes: alone}, s); err != nil || o.Result.Err != nil {
		return "", errors.Join(err, fmt.Errorf("a guest does not get the memory that others have left: %s", o.Result.Summary()))
	}
	return "memory: what a call had comes back when it has ended", nil
}

func pluginHostAttacks() []Attack {
	return []Attack{
		limitAttack("asks-the-person", "Ask the person for something, as a plugin of hyper-mcp.", Guest{}, func(s *script) {
			s.add("extism.create_elicitation", s.block("{}"))
		}, tool.CodeFailed, "not supported").forKinds(plugin),
		limitAttack("keyring", "Ask for a secret of the keyring, as a plugin of hyper-mcp.", Guest{}, func(s *script) {
			s.add("extism.get_keyring_secret", s.block(`{"service":"stockade","user":"`+secretName+`"}`))
		}, tool.CodeFailed, "not supported").forKinds(plugin),
		{Name: "offsets-outside", Description: "Give the host offsets and lengths that overflow, or that lie outside of its blocks.", kinds: plugin, run: offsetsOutside},
		{Name: "input-outside", Description: "Read what lies behind the input.", kinds: plugin, run: inputOutside},
		{Name: "offsets-between", Description: "Free and measure what begins where no block does.", kinds: plugin, run: offsetsBetween},
		{Name: "request-not-granted", Description: "Make a request as a plugin that asked for no network.", kinds: plugin, run: withServers(requestNotGranted)},
		{Name: "request-elsewhere", Description: "Make requests to this machine, its network and its files, where one server was granted.", kinds: plugin, run: withServers(requestElsewhere)},
		{Name: "request-redirected", Description: "Be sent by the server that was granted to one that was not.", kinds: plugin, run: withServers(requestRedirected)},
		{Name: "request-without-end", Description: "Wait for a server that does not answer.", kinds: plugin, run: withServers(requestWithoutEnd)},
		limitAttack("block-churn", "Have the host give out memory and clear it, without end.", Guest{Limits: policy.Limits{Timeout: deadline}}, func(s *script) {
			block := s.add("extism.alloc", int64(16<<20))
			s.add("extism.reset")
			s.repeat(block, 10_000_000)
		}, tool.CodeTimeout, "timed out after 150ms").forKinds(plugin),
		{Name: "secret-value", Description: "Read the value of a secret that it was given, as configuration.", kinds: plugin, run: secretAsConfig},
		{Name: "configuration-of-host", Description: "Read the environment of the host as configuration.", kinds: plugin, run: configurationOfHost},
		{Name: "request-while-initializing", Description: "Make a request before the tool is called.", kinds: plugin, run: requestInitializing},
	}
}

// offsetsOutside tries each offset in a call of its own, which has to end.
func offsetsOutside(t *trial) (string, error) {
	const (
		wraps = ^uint64(7) // wraps to 0 with 8 more
		far   = uint64(1) << 63
		low   = uint64(1) << 32 // is 0 in 32 bits
	)
	type try struct {
		function string
		operands []any
	}
	for by, i := "", 0; ; i++ {
		s := &script{}
		block := s.block("block of 16 byte")
		past := s.words(0)
		s.add("store", past.at, block)
		s.add("add", past.at, 16)
		inner := s.words(0)
		s.add("store", inner.at, block)
		s.add("add", inner.at, 8)
		behind, inside := cell(past.at), cell(inner.at)
		all := []try{
			{"load_u8", []any{uint64(0)}}, {"load_u8", []any{far}}, {"load_u8", []any{wraps}},
			{"load_u64", []any{uint64(0)}}, {"load_u64", []any{uint64(1 << 40)}}, {"load_u64", []any{wraps}}, {"load_u64", []any{^uint64(0)}},
			{"store_u8", []any{uint64(0), 1}}, {"store_u8", []any{low, 1}}, {"store_u8", []any{^uint64(0), 1}},
			{"store_u64", []any{uint64(0), uint64(1)}}, {"store_u64", []any{wraps, uint64(1)}}, {"store_u64", []any{far, uint64(1)}},
			{"output_set", []any{block, far}}, {"output_set", []any{block, wraps}}, {"output_set", []any{wraps, uint64(16)}}, {"output_set", []any{uint64(0), uint64(8)}},
			{"output_set", []any{behind, uint64(1 << 20)}},
			{"error_set", []any{inside}}, {"error_set", []any{wraps}},
			{"log_info", []any{inside}}, {"log_info", []any{far}}, {"log_error", []any{wraps}},
			{"config_get", []any{inside}}, {"config_get", []any{wraps}},
			{"var_get", []any{inside}}, {"var_set", []any{block, inside}}, {"var_set", []any{wraps, block}},
			{"http_request", []any{inside, uint64(0)}}, {"http_request", []any{wraps, uint64(0)}},
		}
		if i == len(all) {
			return by, nil
		}
		s.add("extism."+all[i].function, all[i].operands...)
		var err error
		if by, err = t.runStopped(Guest{}.withScript(s), "", tool.CodeBadABI); err != nil {
			return "", fmt.Errorf("%s(%x): %w", all[i].function, all[i].operands, err)
		}
	}
}

// inputOutside expects zeros, as other hosts return.
func inputOutside(t *trial) (string, error) {
	s := &script{}
	s.block("what lies behind it")
	var all []*call
	for _, at := range []any{cell(machine.InputLength), uint64(1 << 20), uint64(1 << 32), uint64(1) << 63, ^uint64(7), ^uint64(0)} {
		all = append(all, s.add("extism.input_load_u8", at), s.add("extism.input_load_u64", at))
	}
	return t.runToZeros(s, all, "blocks: nothing lies behind the input")
}

// runToZeros fails if one of the calls does not return 0.
func (t *trial) runToZeros(s *script, calls []*call, by string) (string, error) {
	r, err := t.runReport(Guest{}, s)
	if err != nil {
		return "", err
	}
	for _, c := range calls {
		if r.resultOf(c) != 0 {
			return "", fmt.Errorf("it gets %#x", r.resultOf(c))
		}
	}
	return by, nil
}

func offsetsBetween(t *trial) (string, error) {
	const text = "a text of a block"
	s := &script{}
	block := s.block(text)
	between := s.words(0)
	s.add("store", between.at, block)
	s.add("add", between.at, 8)
	s.add("extism.free", cell(between.at))
	for _, offset := range []uint64{0, 1, ^uint64(0), 1 << 63} {
		s.add("extism.free", offset)
	}
	length, unsafe := s.add("extism.length", cell(between.at)), s.add("extism.length_unsafe", cell(between.at))
	whole := s.add("extism.length", block)
	again := s.alloc(int64(len(text)))
	other := s.text(strings.Repeat("x", len(text)))
	s.add("block.put", again, other.at, other.n)
	into := s.reserve(len(text))
	s.add("block.get", block, into.at, into.n)
	r, err := t.runReport(Guest{}, s)
	switch {
	case err != nil:
		return "", err
	case r.resultOf(length) != 0 || r.resultOf(unsafe) != 0:
		return "", fmt.Errorf("it has a length: %d, %d", r.resultOf(length), r.resultOf(unsafe))
	case r.resultOf(whole) != uint32(len(text)) || string(r.span(into)) != text:
		return "", fmt.Errorf("the block has %d bytes now, and holds %q", r.resultOf(whole), r.span(into))
	}
	return "blocks: no block begins there", nil
}

// request adds a call of http_request.
func (s *script) request(url string) *call {
	return s.add("extism.http_request", s.block(string(requestText(url))), uint64(0))
}

func requestText(url string) []byte {
	text, err := json.Marshal(map[string]any{"url": url, "method": "GET", "headers": map[string]string{"x-a": "b"}})
	if err != nil {
		panic(err) // texts always encode
	}
	return text
}

var i32WrapI64 = []byte{0xa7} // i32.wrap_i64

// withServers returns an attack with two servers: one that g grants and reaches, and another, which
// has the canary.
func withServers(run func(t *trial, g Guest, granted, other *server) (string, error)) func(*trial) (string, error) {
	return func(t *trial) (string, error) {
		granted, err := t.serve("for the guest")
		if err != nil {
			return "", newUntried("%v", err)
		}
		defer granted.Close()
		other, err := t.serve(t.canary)
		if err != nil {
			return "", newUntried("%v", err)
		}
		defer other.Close()
		g := Guest{Hosts: []string{granted.url()}}
		if err := t.checkReaches(g, granted); err != nil {
			return "", err
		}
		return run(t, g, granted, other)
	}
}

func requestNotGranted(t *trial, _ Guest, _, other *server) (string, error) {
	s := &script{}
	s.request(other.url())
	return t.checkNoRequest(Guest{}, s, other)
}

// checkNoRequest fails if a server is reached by a script.
func (t *trial) checkNoRequest(g Guest, s *script, server *server) (string, error) {
	o, err := t.runScript(g, s)
	switch {
	case err != nil:
		return "", err
	case server.requests.Load() > 0:
		return "", errors.New("a server was reached that is not granted")
	case o.Result.Err != nil && o.Result.Err.Code == tool.CodeFailed:
		return "egress: " + clip(o.Result.Err.Message, 120), nil
	}
	return stoppedBy(o, "", tool.CodeDenied)
}

// requestElsewhere tries to reach the server that is not granted by many spellings.
func requestElsewhere(t *trial, g Guest, granted, other *server) (by string, err error) {
	port := other.port()
	for _, url := range []string{
		"http://127.0.0.1:" + port, "http://localhost:" + port, "http://127.1:" + port, "http://2130706433:" + port, "http://0x7f.0.0.1:" + port,
		"http://0.0.0.0:" + port, "http://[::1]:" + port, "http://[::ffff:127.0.0.1]:" + port,
		"http://127.0.0.1:" + granted.port() + "@127.0.0.1:" + port, granted.url() + "@127.0.0.1:" + port, "http://127.0.0.1:" + port + "#@" + granted.url(),
		"http://169.254.169.254/latest/meta-data/", "http://[fe80::1]/", "http://10.0.0.1/", "http://192.168.0.1/",
		"file:///etc/passwd", "unix:///var/run/docker.sock", "ftp://127.0.0.1:" + port, "gopher://127.0.0.1:" + port + "/_x", "//127.0.0.1:" + port, "",
	} {
		s := &script{}
		s.request(url)
		if by, err = t.checkNoRequest(g, s, other); err != nil {
			return "", fmt.Errorf("%s: %w", url, err)
		}
	}
	return by, nil
}

// checkReaches fails if a guest does not reach its server.
func (t *trial) checkReaches(g Guest, server *server) error {
	s := &script{}
	s.request(server.url())
	status := s.add("extism.http_status_code")
	r, err := t.runReport(g, s)
	if err == nil && (server.requests.Load() == 0 || r.resultOf(status) != 200) {
		err = newUntried("the guest does not reach the server that it was granted: status %d", r.resultOf(status))
	}
	return err
}

func requestRedirected(t *trial, g Guest, granted, other *server) (string, error) {
	granted.redirect.Store(&other.at)
	before := granted.requests.Load()
	s := &script{}
	s.request(granted.url())
	by, err := t.checkNoRequest(g, s, other)
	if err == nil && granted.requests.Load() == before {
		err = newUntried("nobody was asked: %s", by)
	}
	return by, err
}

func requestWithoutEnd(t *trial, g Guest, granted, _ *server) (string, error) {
	granted.silent.Store(true)
	g.Limits.Timeout = deadline
	return limitAttack("", "", g, func(s *script) { s.request(granted.url()) }, tool.CodeTimeout, "timed out after 150ms").run(t)
}

// server answers every HTTP request, on this machine.
type server struct {
	net.Listener
	at       string // HOST:PORT
	body     string
	redirect atomic.Pointer[string]
	silent   atomic.Bool // it never answers
	requests atomic.Int32
	closed   chan struct{}
	open     sync.WaitGroup
}

func (t *trial) serve(body string) (*server, error) {
	l, err := (&net.ListenConfig{}).Listen(t.ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &server{Listener: l, at: l.Addr().String(), body: body, closed: make(chan struct{})}
	s.open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.requests.Add(1)
			s.open.Go(func() { s.answer(c) })
		}
	})
	return s, nil
}

func (s *server) url() string { return "http://" + s.at }

func (s *server) port() string {
	_, port, _ := net.SplitHostPort(s.at)
	return port
}

func (s *server) Close() {
	close(s.closed)
	_ = s.Listener.Close()
	s.open.Wait()
}

// answer reads the first bytes of a request, which is all of a request here, and answers.
func (s *server) answer(c net.Conn) {
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	if _, err := c.Read(make([]byte, 4096)); err != nil {
		return
	}
	if s.silent.Load() {
		<-s.closed
		return
	}
	head := "HTTP/1.1 200 OK\r\n"
	if to := s.redirect.Load(); to != nil {
		head = "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://" + *to + "/\r\n"
	}
	_, _ = io.WriteString(c, fmt.Sprintf("%sContent-Length: %d\r\nConnection: close\r\n\r\n%s", head, len(s.body), s.body))
}

// secretAsConfig asks for the secret by its name, and for another one.
func secretAsConfig(t *trial) (string, error) {
	s := &script{}
	got := s.add("extism.config_get", s.block(secretName))
	into := s.reserve(256)
	n := s.add("extism.length", got.resultCell())
	s.add("block.get", got.resultCell(), into.at, cell(n.result))
	s.add("say", into.at, into.n)
	other := s.add("extism.config_get", s.block("OTHER"))
	r, err := t.runReport(Guest{HasSecret: true}, s)
	switch {
	case err != nil:
		return "", err
	case r.resultOf(got) == 0 || r.resultOf(n) == 0 || r.callCount(other) != 1:
		return "", newUntried("it has no placeholder")
	case r.resultOf(other) != 0:
		return "", errors.New("it gets what it was not given")
	}
	return "secrets: a placeholder stands for the value", nil
}

func configurationOfHost(t *trial) (string, error) {
	s := &script{}
	var all []*call
	for _, name := range []string{"PATH", "HOME", "USER", "\x00", "..", secretName} {
		all = append(all, s.add("extism.config_get", s.block(name)))
	}
	return t.runToZeros(s, all, "instance: no configuration")
}

// requestInitializing uses functions of the host before there is a call.
func requestInitializing(t *trial) (string, error) {
	server, err := t.serve(t.canary)
	if err != nil {
		return "", newUntried("%v", err)
	}
	defer server.Close()
	request := requestText(server.url())
	initializing := func(m *machine.Machine) []byte {
		block := func(at, n int) []byte {
			return code(w.I32Const(int32(machine.BufferBase+at)), w.I32Const(int32(n)), m.Block())
		}
		return code(
			w.I32Const(machine.StateAt), block(0, len(request)), w.I64Const(0), w.Call(m.ImportIndex("extism.http_request")), i32WrapI64, w.I32Store(0),
			w.I32Const(machine.StateAt), block(len(request), len(secretName)), w.Call(m.ImportIndex("extism.config_get")), i32WrapI64, w.I32Store(8))
	}
	g := Guest{Hosts: []string{server.url()}, HasSecret: true, machineOptions: &machine.Options{
		Initialize: initializing, Data: []w.Segment{{Offset: machine.BufferBase, Bytes: append(request, secretName...)}},
	}}
	s := &script{}
	answer, config := s.add("load", machine.StateAt), s.add("load", machine.StateAt+8)
	r, err := t.runReport(g, s)
	switch {
	case err != nil:
		return "", err
	case server.requests.Load() > 0 || r.resultOf(answer) != 0 || r.resultOf(config) != 0:
		return "", errors.New("it got an answer")
	}
	return "extism: nothing is there while a module initialises", nil
}
