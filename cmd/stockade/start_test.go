package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/registry"
	"github.com/stockade-dev/stockade/host/registry/sign"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/tool"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// stocked adds modules to a store, mod0, mod1 and so on, each with one tool that
// returns its arguments, and a signature of somebody whom nobody knows: records of
// 2.5 KB.
func stocked(t testing.TB, s *store.Store, n int) {
	t.Helper()
	key, err := sign.Generate(sign.Ed25519)
	if err != nil {
		t.Fatal(err)
	}
	var codes [][]byte
	var records []store.Record
	for i := range n {
		name := fmt.Sprint("mod", i)
		text := fmt.Sprintf(`{"abi":"stockade:tool@0.1.0","name":%q,"version":"1.0.0","tools":[{"name":"now",`+
			`"description":"The weather of a place, as the service of the country says: temperature, wind and rain.",`+
			`"parameters":{"type":"object","properties":{"place":{"type":"string","description":"a town, or a latitude and a longitude"},`+
			`"days":{"type":"integer","minimum":1,"maximum":10}}},"capabilities":{"network":"http","hosts":["api.example.org"]}}]}`, name)
		code := wasmtest.Tool(wasmtest.ToolOptions{Call: wasmtest.EchoArgs(), Manifest: text})
		m, err := tool.ParseManifest([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(code)
		digest := hex.EncodeToString(sum[:])
		now := time.Now().UTC().Truncate(time.Second)
		repository := "registry.example.org/tools/" + name
		envelope, err := sign.Sign(sign.Statement{
			Repository: repository, Name: name, Version: "1.0.0", Digest: "sha256:" + digest, Fingerprint: sign.Fingerprint(m.Fingerprint()), Issued: now,
		}, key)
		if err != nil {
			t.Fatal(err)
		}
		evidence, err := json.Marshal(sign.Evidence{Envelopes: [][]byte{envelope}})
		if err != nil {
			t.Fatal(err)
		}
		codes = append(codes, code)
		records = append(records, store.Record{
			Name: name, Source: "oci://" + repository + ":1", Repository: repository, ManifestDigest: "sha256:" + digest,
			Digest: digest, Bytes: int64(len(code)), Manifest: m, Fingerprint: m.Fingerprint(), Evidence: evidence, Added: now,
			Allowances: map[string]tool.Allowance{"": {Hosts: []string{"api.example.org"}}},
		})
	}
	if err := s.Change(codes, func([]store.Record) ([]store.Record, error) { return records, nil }); err != nil {
		t.Fatal(err)
	}
}

// TestNoModuleIsOpenedBeforeItIsCalled removes the files of all modules except one. All
// modules are listed, and the remaining one can be called; another one is missed only
// when it is called.
func TestNoModuleIsOpenedBeforeItIsCalled(t *testing.T) {
	p := newPerson(t)
	stocked(t, p.modules(), 50)
	records, err := p.modules().Records()
	if err != nil || len(records) != 50 {
		t.Fatal(len(records), err)
	}
	for _, r := range records {
		if r.Name == "mod7" {
			continue
		}
		if err := os.Remove(filepath.Join(p.home, ".local", "share", "stockade", "modules", "sha256", r.Digest+".wasm")); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"tool", "list"}, {"tool", "info", "mod3"}} {
		if out := p.runs(args...); !strings.Contains(out, "mod3") {
			t.Errorf("%q: %s", args, out)
		}
	}
	if out := p.runs("call", "--allow", "mod7_now", "mod7_now", `{"place":"here"}`); !strings.Contains(out, "here") {
		t.Errorf("called: %s", out)
	}
	if out, err := p.command("call", "--allow", "mod3_now", "mod3_now", `{"place":"here"}`).CombinedOutput(); err == nil || !strings.Contains(string(out), "add it again") {
		t.Errorf("a module that is not there: %v, %s", err, out)
	}
	if out, err := p.command("tool", "verify").CombinedOutput(); err == nil || !strings.Contains(string(out), "49 faults of 50 modules") {
		t.Errorf("verify: %v, %s", err, out)
	}
}

// TestADamagedIndexLeavesTheBuiltInTools: one byte is another, and the program goes on.
func TestADamagedIndexLeavesTheBuiltInTools(t *testing.T) {
	p := newPerson(t)
	stocked(t, p.modules(), 2)
	index := filepath.Join(p.home, ".local", "share", "stockade", "modules", "index.json")
	data, err := os.ReadFile(index)
	if err != nil {
		t.Fatal(err)
	}
	if out := p.runs("tool", "list"); !strings.Contains(out, "mod1_now") {
		t.Fatalf("the counter-proof: %s", out)
	}
	data[len(data)/2] ^= 1
	if err := os.WriteFile(index, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.dir, "a.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args []string
		want string
	}{{[]string{"call", "ls"}, "a.txt"}, {[]string{"tool", "list"}, "file_read"}} {
		cmd := p.command(tt.args...)
		var message strings.Builder
		cmd.Stderr = &message
		out, err := cmd.Output()
		if err != nil || !strings.Contains(string(out), tt.want) || strings.Contains(string(out), "mod1_now") || !strings.Contains(message.String(), "no added tool is offered") {
			t.Errorf("%q: %v, %s%s", tt.args, err, out, message.String())
		}
	}
	for _, args := range [][]string{{"call", "mod1_now", "{}"}, {"tool", "verify"}, {"tool", "remove", "mod1"}, {"tool", "enable", "mod1"}} {
		if out, err := p.command(args...).CombinedOutput(); err == nil {
			t.Errorf("%q: %s", args, out)
		}
	}
	if now, err := os.ReadFile(index); err != nil || string(now) != string(data) {
		t.Errorf("the index was written: %v", err)
	}
}

// BenchmarkTools measures the time that a start spends on added modules.
func BenchmarkTools(b *testing.B) {
	for _, n := range []int{0, 50, 500} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			a := testApp(b)
			stocked(b, a.moduleStore(), n)
			if _, err := registry.Builtin(); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if h, err := a.findTools(b.Context()); err != nil || len(h.added) != n {
					b.Fatal(len(h.added), err)
				}
			}
		})
	}
}
