package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/guests/gueststest"
	"github.com/stockade-dev/stockade/host/registry/store"
	"github.com/stockade-dev/stockade/host/wasm/wasmtest"
)

// person is somebody with a home of their own, who runs the program.
type person struct {
	t         testing.TB
	home, dir string
	env       []string
}

func newPerson(t testing.TB) *person {
	gueststest.Need(t)
	p := &person{t: t, home: t.TempDir(), dir: t.TempDir()}
	p.env = append(os.Environ(), "HOME="+p.home, "TEST_ACCOUNT_HOME="+p.home, "TEST_ADMINISTRATOR="+filepath.Join(p.home, "etc"), "NO_COLOR=1",
		"XDG_CONFIG_HOME=", "XDG_DATA_HOME=", "XDG_STATE_HOME=", "XDG_CACHE_HOME=")
	return p
}

func (p *person) command(args ...string) *exec.Cmd {
	cmd := exec.CommandContext(p.t.Context(), "stockade", args...)
	cmd.Dir, cmd.Env = p.dir, p.env
	return cmd
}

// runs runs the program, which has to succeed.
func (p *person) runs(args ...string) string {
	p.t.Helper()
	var message strings.Builder
	cmd := p.command(args...)
	cmd.Stderr = &message
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("stockade %s: %v\n%s%s", strings.Join(args, " "), err, out, message.String())
	}
	return string(out)
}

// modules returns the store of modules of a person without settings.
func (p *person) modules() *store.Store {
	return store.Open(filepath.Join(p.home, ".local", "share", "stockade", "modules"))
}

// put writes a module whose one tool, now, returns its arguments, and returns its
// SHA-256.
func (p *person) put(name, version string) string {
	p.t.Helper()
	code := wasmtest.Tool(wasmtest.ToolOptions{Call: wasmtest.EchoArgs(), Manifest: fmt.Sprintf(
		`{"abi":"stockade:tool@0.1.0","name":%q,"version":%q,"tools":[{"name":"now","description":"It was made for a test.","parameters":{"type":"object"}}]}`, name, version)})
	if err := os.WriteFile(filepath.Join(p.dir, name+".wasm"), code, 0o600); err != nil {
		p.t.Fatal(err)
	}
	sum := sha256.Sum256(code)
	return hex.EncodeToString(sum[:])
}
