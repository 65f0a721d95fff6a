// Command tck is the guest of the conformance tests. Each of its tools exercises one part
// of the contract, so that the test of a host can find the broken part: how arguments and
// results cross memory (echo, alloc), every error (fail, panic), every import (host, log,
// keep, config, digest), and the context of a call (context).
package main

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/stockade-dev/stockade/sdk/go/config"
	"github.com/stockade-dev/stockade/sdk/go/digest"
	"github.com/stockade-dev/stockade/sdk/go/exec"
	"github.com/stockade-dev/stockade/sdk/go/http"
	"github.com/stockade-dev/stockade/sdk/go/kv"
	"github.com/stockade-dev/stockade/sdk/go/log"
	"github.com/stockade-dev/stockade/sdk/go/progress"
	"github.com/stockade-dev/stockade/sdk/go/search"
	"github.com/stockade-dev/stockade/sdk/go/secrets"
	"github.com/stockade-dev/stockade/sdk/go/tool"
)

func init() {
	tool.Module("tck", "0.1.0")
	tool.Register("echo", "Returns its text, the text's length and its SHA-256.", echo)
	tool.Register("panic", "Panics with the text.", doPanic)
	tool.Register("fail", "Returns the error that is asked for.", fail)
	tool.Register("log", "Logs the text once at every level.", logAll)
	tool.Register("host", "Calls every host function once and returns what came back.", host,
		tool.ReadsFiles(), tool.RunsCommand("command", ""), tool.UsesNetwork(), tool.UsesSecret("TOKEN", ""), tool.KeepsData())
	tool.Register("keep", "Sets and deletes keys of the store, and returns what it then holds.", keep, tool.KeepsData())
	tool.Register("alloc", "Allocates and frees memory, collects garbage and returns the size of the heap.", alloc)
	tool.Config("color", "red")
	tool.Register("config", "Returns what the module is configured with, now and while it initialised.", reportConfig)
	tool.Register("digest", "Returns the hashes of some bytes, as the host computes them and as the guest does, and those while it initialised.", digests)
	tool.Register("context", "Returns what the call's context says.", callContext, tool.ReadsFiles())
}

func main() {}

type textArgs struct {
	Text string `json:"text" desc:"Any text."`
}

type echoResult struct {
	Text   string `json:"text"`
	Length int    `json:"length"` // length of Text in bytes
	SHA256 string `json:"sha256"`
}

func echo(_ context.Context, in textArgs) (echoResult, error) {
	sum := sha256.Sum256([]byte(in.Text))
	return echoResult{in.Text, len(in.Text), hex.EncodeToString(sum[:])}, nil
}

func doPanic(_ context.Context, in textArgs) (string, error) { panic(in.Text) }

type failArgs struct {
	Kind string `json:"kind" desc:"Which error." enum:"invalid-input,not-found,denied,io,parse,unavailable,cancelled,failed,plain,missing-file"`
	Text string `json:"text,omitempty" desc:"The error's text." default:"as asked"`
}

func fail(_ context.Context, in failArgs) (string, error) {
	switch in.Kind {
	case "invalid-input":
		return "", tool.InvalidInput("%s", in.Text)
	case "not-found":
		return "", tool.NotFound("%s", in.Text)
	case "denied":
		return "", tool.Denied("%s", in.Text)
	case "io":
		return "", tool.IO("%s", in.Text)
	case "parse":
		return "", tool.Parse("%s", in.Text)
	case "unavailable":
		return "", tool.Unavailable("%s", in.Text)
	case "cancelled":
		return "", tool.Cancelled("%s", in.Text)
	case "failed":
		return "", tool.Failed("%s", in.Text)
	case "missing-file":
		_, err := os.Open("/no/such/file")
		return "", err
	}
	return "", errors.New(in.Text)
}

func logAll(_ context.Context, in textArgs) (string, error) {
	log.Tracef("%s", in.Text)
	log.Debugf("%s", in.Text)
	log.Infof("%s", in.Text)
	log.Warnf("%s", in.Text)
	log.Errorf("%s", in.Text)
	return "logged", nil
}

type hostArgs struct {
	URL     string `json:"fetch" desc:"What http.fetch requests."`
	Body    string `json:"body,omitempty" desc:"The request's body; none when absent."`
	Key     string `json:"key" desc:"The key that the kv functions use."`
	Value   string `json:"value" desc:"What kv.set stores."`
	Secret  string `json:"secret" desc:"Which secret's placeholder to ask for."`
	Command string `json:"command" desc:"The bash command that exec.run runs."`
	Path    string `json:"path,omitempty" desc:"A file or directory to look at." default:"."`
}

// hostResult has one field for each import. Errors holds error texts by the name of the
// import.
type hostResult struct {
	Cancelled   bool              `json:"cancelled"`
	Fetch       *fetchResult      `json:"fetch,omitempty"`
	Value       string            `json:"value,omitempty"`
	Found       bool              `json:"found"`
	Keys        []string          `json:"keys,omitempty"`
	Placeholder string            `json:"placeholder,omitempty"`
	Exec        *execResult       `json:"exec,omitempty"`
	File        string            `json:"file,omitempty"`   // the type of Path: dir or file
	StatType    string            `json:"looked,omitempty"` // the type of Path, found by the host
	Errors      map[string]string `json:"errors,omitempty"`
}

type fetchResult struct {
	Status    int      `json:"status"`
	URL       string   `json:"url"`
	Headers   []string `json:"headers,omitempty"` // "name: value"
	Body      string   `json:"body"`
	Truncated bool     `json:"truncated"`
}

type execResult struct {
	ExitCode  int    `json:"exit_code"`
	Signal    int    `json:"signal"`
	TimedOut  bool   `json:"timed_out"`
	Stdout    string `json:"stdout"`
	Stderr    string `json:"stderr"`
	Truncated bool   `json:"truncated"`
}

func host(ctx context.Context, in hostArgs) (hostResult, error) {
	out := hostResult{Errors: map[string]string{}}
	note := func(what string, err error) {
		if err != nil {
			out.Errors[what] = err.Error()
		}
	}
	log.Infof("tck: host")
	progress.Report(1, 2, "half")
	out.Cancelled = progress.Cancelled()

	var body []byte
	if in.Body != "" {
		body = []byte(in.Body)
	}
	headers := []http.Header{{Name: "x-one", Value: "1"}, {Name: "x-empty"}}
	placeholder, err := secrets.Placeholder(in.Secret)
	note("placeholder", err)
	out.Placeholder = placeholder
	if err == nil {
		headers = append(headers, http.Header{Name: "authorization", Value: "Bearer " + placeholder})
	}
	resp, err := http.Fetch(ctx, http.Request{
		URL:      in.URL,
		Headers:  headers,
		Body:     body,
		Timeout:  5 * time.Second,
		MaxBytes: 1 << 16,
	})
	note("fetch", err)
	if err == nil {
		out.Fetch = &fetchResult{Status: resp.Status, URL: resp.URL, Body: string(resp.Body), Truncated: resp.Truncated}
		for _, h := range resp.Headers {
			out.Fetch.Headers = append(out.Fetch.Headers, h.Name+": "+h.Value)
		}
	}

	note("set", kv.Set(in.Key, []byte(in.Value), time.Minute))
	value, found, err := kv.Get(in.Key)
	out.Value, out.Found = string(value), found
	note("get", err)
	out.Keys, err = kv.Keys("", 10)
	note("keys", err)
	note("delete", kv.Delete(in.Key))

	outcome, err := exec.Run(ctx, exec.Command{Argv: []string{"bash", "-c", in.Command}, Timeout: 10 * time.Second})
	note("exec", err)
	if err == nil {
		out.Exec = &execResult{outcome.ExitCode, outcome.Signal, outcome.TimedOut,
			string(outcome.Stdout), string(outcome.Stderr), outcome.Truncated}
	}

	info, err := os.Stat(in.Path)
	note("file", err)
	if err == nil {
		out.File = "file"
		if info.IsDir() {
			out.File = "dir"
		}
	}
	path, err := filepath.Abs(in.Path)
	note("abs", err)
	infos, err := search.Stat(path, path+"/no/such/file")
	note("look", err)
	if err == nil && infos[0] != nil && infos[1] == nil {
		out.StatType = "file"
		if infos[0].Type.IsDir() {
			out.StatType = "dir"
		}
	}
	return out, nil
}

type keepArgs struct {
	Set    map[string]string `json:"set,omitempty" desc:"What to set."`
	TTL    int               `json:"ttl_ms,omitempty" desc:"How long that is kept; 0 is forever."`
	Delete []string          `json:"delete,omitempty" desc:"What to delete then."`
	Prefix string            `json:"prefix,omitempty" desc:"How the keys begin that are returned."`
	Limit  uint32            `json:"limit,omitempty" desc:"How many." default:"1000"`
	Fail   bool              `json:"fail,omitempty" desc:"Whether the call fails in the end."`
}

type keepResult struct {
	Keys   []string          `json:"keys"`
	Values map[string]string `json:"values"`
	Errors map[string]string `json:"errors,omitempty"` // texts of errors, by the key
}

func keep(_ context.Context, in keepArgs) (keepResult, error) {
	out := keepResult{Values: map[string]string{}, Errors: map[string]string{}}
	for _, key := range slices.Sorted(maps.Keys(in.Set)) {
		if err := kv.Set(key, []byte(in.Set[key]), time.Duration(in.TTL)*time.Millisecond); err != nil {
			out.Errors[key] = err.Error()
		}
	}
	for _, key := range in.Delete {
		if err := kv.Delete(key); err != nil {
			out.Errors[key] = err.Error()
		}
	}
	var err error
	if out.Keys, err = kv.Keys(in.Prefix, in.Limit); err != nil {
		return out, err
	}
	for _, key := range out.Keys {
		value, ok, err := kv.Get(key)
		if err != nil || !ok {
			return out, errors.Join(fmt.Errorf("%s is listed and not there", key), err)
		}
		out.Values[key] = string(value)
	}
	if in.Fail {
		return out, tool.Failed("as asked")
	}
	return out, nil
}

type allocArgs struct {
	Bytes  int `json:"bytes" desc:"How much to allocate at a time." min:"0" max:"4294967296"`
	Rounds int `json:"rounds,omitempty" desc:"How often." min:"1" max:"1000000" default:"1"`
	Keep   int `json:"keep,omitempty" desc:"How many of the blocks to hold at the same time." min:"0" max:"1000000"`
}

type allocResult struct {
	HeapBytes uint64 `json:"heap_bytes"` // size of the heap after the last collection
	SysBytes  uint64 `json:"sys_bytes"`  // bytes that the Go runtime took from the memory
	Cycles    uint32 `json:"cycles"`
}

func alloc(ctx context.Context, in allocArgs) (allocResult, error) {
	var kept [][]byte
	for range in.Rounds {
		if err := ctx.Err(); err != nil {
			return allocResult{}, err
		}
		b := make([]byte, in.Bytes)
		for i := 0; i < len(b); i += 4096 {
			b[i] = 0xAA // touch every page
		}
		if len(kept) < in.Keep {
			kept = append(kept, b)
		}
	}
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	runtime.KeepAlive(kept)
	return allocResult{stats.HeapAlloc, stats.Sys, stats.NumGC}, nil
}

type noArgs struct{}

// initialColor is the configured color, read while the module initialised.
var initialColor, _ = config.Get("color")

type configResult struct {
	Color  string `json:"color"`
	Other  bool   `json:"other"` // a name that is not declared has a value
	Before string `json:"before"`
}

func reportConfig(context.Context, noArgs) (configResult, error) {
	color, _ := config.Get("color")
	_, other := config.Get("other")
	return configResult{color, other, initialColor}, nil
}

// initialDigests are hashes of nothing, made while the module initialised.
var initialDigests = hashes(nil)

type digestArgs struct {
	Bytes int `json:"bytes" desc:"How many." min:"0" max:"16777216"`
}

type digestResult struct {
	Host   []string `json:"host"` // SHA-256 and SHA-1
	Guest  []string `json:"guest"`
	Before []string `json:"before"`
}

func digests(_ context.Context, in digestArgs) (digestResult, error) {
	data := make([]byte, in.Bytes)
	for i := range data {
		data[i] = byte(i * i)
	}
	long, short := sha256.Sum256(data), sha1.Sum(data)
	return digestResult{hashes(data), []string{hex.EncodeToString(long[:]), hex.EncodeToString(short[:])}, initialDigests}, nil
}

func hashes(data []byte) []string {
	long, short := digest.SHA256(data), digest.SHA1(data)
	return []string{hex.EncodeToString(long[:]), hex.EncodeToString(short[:])}
}

type contextResult struct {
	ID          string `json:"id"`
	Dir         string `json:"dir"`
	Locale      string `json:"locale"`
	HasDeadline bool   `json:"has_deadline"`
	Getwd       string `json:"getwd"`
	Env         string `json:"env"`
}

func callContext(ctx context.Context, _ noArgs) (contextResult, error) {
	call := tool.CallFrom(ctx)
	wd, err := os.Getwd()
	if err != nil {
		return contextResult{}, fmt.Errorf("getwd: %w", err)
	}
	_, has := ctx.Deadline()
	return contextResult{call.ID, call.Dir, call.Locale, has, wd, strings.Join(os.Environ(), " ")}, nil
}
