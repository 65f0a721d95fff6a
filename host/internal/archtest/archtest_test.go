// Package archtest holds the import table of the project as a test: which package may
// import which others, and which packages may use a library.
package archtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/stockade-dev/stockade/"

// table lists the packages of this module that each package may import. A package that is
// not in the table fails the test: add it, and think.
var table = map[string][]string{
	"host":                      {},
	"wit":                       {},
	"host/tool":                 {"sdk/go/nearest", "sdk/go/lines", "sdk/go/patch", "sdk/go/picture"},
	"host/shellword":            {},
	"host/llm":                  {"host/tool"},
	"host/llm/provider":         {"host/llm", "host/tool"},
	"host/llm/openai":           {"host/llm", "host/llm/provider"},
	"host/llm/openai/responses": {"host/llm", "host/llm/openai", "host/llm/provider"},
	"host/llm/ollama":           {"host/llm", "host/llm/provider", "host/tool"},
	"host/llm/anthropic":        {"host/llm", "host/llm/provider", "host/tool"},
	"host/llm/offline":          {"host/llm", "host/tool"},
	"host/llm/llmtest":          {"host/llm", "host/llm/offline", "host/tool"},
	"host/llm/foreign":          {},
	"host/wasm":                 {},
	"host/wasm/fuel":            {"host/wasm"},
	"host/wasm/wasmtest":        {"host/wasm"},
	"host/policy":               {"host/diff", "host/git", "host/policy/gitconfig", "host/policy/command", "host/policy/match", "host/policy/network", "host/policy/paths", "host/redact", "host/tool", "sdk/go/filename", "sdk/go/nearest"},
	"host/policy/command":       {},
	"host/policy/gitconfig":     {},
	"host/policy/match":         {"host/policy/command", "host/policy/network", "host/policy/paths"},
	"host/policy/network":       {},
	"host/policy/paths":         {"sdk/go/filename"},
	"host/diff":                 {"host/git", "host/tool", "sdk/go/charset"},
	"host/services":             {"host/stage", "host/tool", "host/policy"},
	"host/egress":               {"host/services", "host/policy", "host/policy/network", "host/redact"},
	"host/redact":               {"host/shellword"},
	"host/secret":               {"host/internal/private", "host/services", "host/redact", "host/tool"},
	"host/rootedfs":             {},
	"host/git":                  {"host/rootedfs", "host/git/format", "host/git/ignore", "host/policy/gitconfig", "host/tool"},
	"host/git/format":           {},
	"host/git/ignore":           {},
	"host/instructions":         {"host/rootedfs", "host/visible"},
	"host/stage":                {"host/git", "host/rootedfs", "host/policy", "host/policy/paths", "host/tool"},
	"host/llm/google":           {"host/llm", "host/llm/provider", "host/tool"},

	"host/visible":         {},
	"host/registry":        {"host/internal/regular", "guests", "host/policy", "host/sandbox/admit", "host/tool", "host/wasm", "host/registry/lock", "host/registry/oci", "host/registry/sign", "host/registry/source", "host/registry/store", "host/registry/trust"},
	"host/registry/author": {"host/diff", "host/services", "host/policy", "host/policy/network", "host/registry/author/toolchain", "host/secret", "host/tool", "host/wasm", "sdk", "wit"},

	"host/registry/author/toolchain": {},

	"host/registry/description": {"host/internal/regular", "host/config/keys", "host/tool", "host/wasm"},

	"host/registry/lock":       {"host/config/keys", "host/tool", "host/visible"},
	"host/registry/oci":        {"host/services", "host/policy/network", "host/registry/oci/credential", "host/registry/sign", "host/sandbox/admit"},
	"host/registry/sign":       {"host/tool"},
	"host/registry/source":     {"host/internal/regular", "host/services", "host/policy/network", "host/registry/oci", "host/registry/sign", "host/sandbox/admit"},
	"host/registry/store":      {"host/internal/private", "host/tool", "host/visible"},
	"host/registry/trust":      {"host/config/keys", "host/registry/sign"},
	"host/session/export":      {"host/policy", "host/session"},
	"host/session":             {"host/llm", "host/policy", "host/redact", "host/tool", "host/visible"},
	"host/session/stats":       {"host/llm", "host/session", "host/tool"},
	"host/session/sqlite":      {"host/internal/private", "host/session"},
	"host/session/sessiontest": {"host/session"},

	"host/registry/oci/credential": {"host/internal/regular", "host/internal/private"},

	"host/sandbox":        {"host/services", "host/redact", "host/tool", "host/policy", "host/policy/paths", "host/wasm", "host/wasm/fuel", "host/sandbox/abi", "host/sandbox/admit", "host/sandbox/codecache", "host/sandbox/dialect", "host/sandbox/dialect/command", "host/sandbox/dialect/extism", "host/sandbox/dialect/tools", "host/sandbox/hostmod", "host/sandbox/linear", "host/sandbox/meter", "host/sandbox/native", "host/sandbox/wasi", "host/sandbox/wasi/preview1", "host/stage"},
	"host/sandbox/abi":    {"host/redact", "sdk/go/picture"},
	"host/sandbox/linear": {"host/sandbox/mapped"},
	"host/sandbox/mapped": {},
	"host/sandbox/native": {"host/sandbox/mapped"},
	"host/sandbox/meter":  {"host/policy", "host/wasm/fuel"},
	"host/sandbox/wasi":   {"host/rootedfs", "host/policy", "host/policy/paths", "host/stage", "sdk/go/filename"},

	"host/sandbox/admit":   {"host/tool", "host/wasm", "host/wasm/fuel", "host/sandbox/abi", "host/sandbox/dialect", "host/sandbox/wasi/preview1"},
	"host/sandbox/dialect": {"host/policy", "host/redact", "host/sandbox/abi", "host/sandbox/hostmod", "host/sandbox/meter", "host/sandbox/wasi/preview1", "host/tool", "host/wasm"},

	"host/sandbox/dialect/command": {"host/policy/paths", "host/sandbox/abi", "host/sandbox/dialect", "host/sandbox/wasi/preview1", "host/tool", "host/wasm"},
	"host/sandbox/dialect/extism":  {"host/services", "host/policy", "host/sandbox/abi", "host/sandbox/dialect", "host/sandbox/hostmod", "host/sandbox/linear", "host/sandbox/wasi/preview1", "host/tool", "host/wasm"},

	"host/sandbox/dialect/tools": {"host/sandbox/abi", "host/sandbox/dialect", "host/sandbox/hostmod", "host/tool", "host/wasm"},

	"host/sandbox/codecache": {"host/internal/private", "host/sandbox/linear", "host/sandbox/native"},

	"host/sandbox/wasi/preview1": {"host/sandbox/abi", "host/sandbox/wasi"},

	"host/sandbox/search": {"host/sandbox/wasi", "sdk/go/filename", "sdk/go/lines"},

	"host/sandbox/hostmod": {"host/stage", "host/sandbox/abi", "host/sandbox/meter", "host/sandbox/search", "host/sandbox/wasi", "host/wasm/fuel", "host/services", "host/redact", "host/tool", "host/policy"},

	"host/selftest": {"host/tool", "host/policy", "host/policy/match", "host/policy/network", "host/services", "host/secret", "host/jail/probe", "host/dispatch", "host/session", "host/sandbox", "host/sandbox/abi", "host/sandbox/wasi", "host/selftest/machine", "host/wasm", "host/wasm/wasmtest"},

	"host/selftest/machine": {"host/sandbox/abi", "host/wasm", "host/wasm/wasmtest"},

	"host/githistory": {"host/rootedfs", "host/internal/private", "host/policy", "host/policy/gitconfig", "host/policy/paths"},

	"host/jail": {"host/githistory", "host/rootedfs", "host/stage", "host/tool", "host/services", "host/egress", "host/jail/walk", "host/jail/wire", "host/policy", "host/policy/paths", "host/redact", "host/shellword", "host/visible"},

	"host/jail/helper":  {"host/rootedfs", "host/jail/seccomp", "host/jail/wire"},
	"host/jail/probe":   {},
	"host/jail/seccomp": {},
	"host/jail/walk":    {"host/policy/gitconfig", "host/rootedfs", "host/policy/paths"},
	"host/jail/wire":    {},

	"host/dispatch":  {"host/diff", "host/git", "host/redact", "host/tool", "host/policy", "host/policy/paths", "host/session", "host/llm", "host/toolstore", "sdk/go/filename"},
	"host/toolstore": {"host/policy", "host/session", "host/tool"},
	"host/agent":     {"host/tool", "host/llm", "host/session"},
	"host/undo":      {"host/rootedfs", "host/diff", "host/llm", "host/policy", "host/policy/paths", "host/redact", "host/session", "host/stage", "host/tool", "sdk/go/filename"},
	"host/config":    {"host/config/keys", "sdk/go/nearest"},
	"host/door": {"guests", "host/agent", "host/githistory", "host/policy/paths", "host/dispatch", "host/services", "host/egress", "host/instructions", "host/jail", "host/llm", "host/llm/anthropic", "host/llm/google", "host/llm/offline", "host/llm/ollama", "host/llm/openai", "host/llm/openai/responses", "host/llm/provider", "host/policy", "host/policy/network", "host/redact", "host/registry",
		"host/sandbox", "host/secret", "host/session", "host/session/export", "host/session/sqlite", "host/stage", "host/tool", "host/undo"},

	"host/config/keys":       {"sdk/go/nearest"},
	"host/config/policyfile": {"host/config", "host/config/keys", "host/policy", "host/policy/match", "host/policy/network", "host/shellword", "host/tool"},

	"host/settings": {"host/internal/private", "host/registry/trust", "host/config", "host/config/keys", "host/config/policyfile", "host/door", "host/egress", "host/llm", "host/secret", "host/policy", "host/policy/network", "host/tool"},

	"host/internal/archtest": {},
	"host/internal/hosttest": {"host/tool"},
	"host/internal/private":  {},
	"host/internal/regular":  {},
}

// libraryOwners maps each library to the only packages, or trees of packages, that may
// import it, separated by spaces.
var libraryOwners = map[string]string{
	"github.com/tetratelabs/wazero": "host/sandbox",
	// Its files follow links out of a mount, and its WASI keeps state in the
	// instance.
	"github.com/tetratelabs/wazero/imports":            "nowhere",
	"github.com/tetratelabs/wazero/experimental/sys":   "nowhere",
	"github.com/tetratelabs/wazero/experimental/sysfs": "nowhere",
	"github.com/mattn/go-sqlite3":                      "host/session/sqlite",
	"github.com/sashabaranov/go-openai":                "host/llm",
	"github.com/anthropics/anthropic-sdk-go":           "nowhere", // tests: what Anthropic says the format is
	"google.golang.org/genai":                          "nowhere", // tests: the formats that Google documents
	"github.com/BurntSushi/toml":                       "host/config host/registry host/settings",
	"mvdan.cc/sh/v3":                                   "host/policy/command",
	"github.com/spf13/cobra":                           "cmd/stockade",
	"github.com/google/jsonschema-go":                  "nowhere", // tests: the suite of JSON Schema
	"github.com/klauspost/compress":                    "guests host/sandbox cmd/stockade/internal/packguests",
	"github.com/aymanbagabas/go-udiff":                 "host/diff",
	"github.com/zalando/go-keyring":                    "host/secret",
	"golang.org/x/crypto":                              "host/secret",
	"database/sql":                                     "host/session/sqlite",
	"net/http":                                         "host/llm host/egress host/registry/oci host/registry/source",
	"oras.land/oras-go/v2":                             "host/registry/oci",
	"github.com/opencontainers":                        "host/registry/oci",
	"golang.org/x/net":                                 "host/policy/network host/egress",                                                                                          // names; and name servers in tests
	"os/exec":                                          "host/jail host/registry/author/toolchain host/registry/oci/credential cmd/stockade/internal/pager host/internal/hosttest", // the last for tests
	"log":                                              "nowhere",
	"charm.land/bubbletea/v2":                          "cmd/stockade/internal/tui cmd/stockade/internal/editor",
	"github.com/yuin/goldmark":                         "cmd/stockade/internal/markdown",
	// Its inputs link code that searches PATH for clipboard programs, and starts them.
	"charm.land/bubbles/v2": "nowhere",
	// It loses text and decodes invisible characters.
	"charm.land/glamour/v2": "nowhere",
	// Its lexers cost each start 10 ms.
	"github.com/alecthomas/chroma/v2": "nowhere",
}

type pkg struct {
	ImportPath string
	Dir        string
	Imports    []string
	GoFiles    []string
}

// list returns every package of the module, with the files of all platforms, and those
// that only benchmarks build.
func list(t *testing.T) []pkg {
	t.Helper()
	pkgs, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	return pkgs
}

var listed = sync.OnceValues(func() ([]pkg, error) {
	byPath := map[string]pkg{}
	for _, system := range []string{"linux", "darwin", "windows"} {
		cmd := exec.Command("go", "list", "-tags=bench", "-json=ImportPath,Dir,Imports,GoFiles", module+"...")
		cmd.Env = append(os.Environ(), "GOOS="+system)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("go list for %s: %w\n%s", system, err, &stderr)
		}
		for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
			var p pkg
			if err := dec.Decode(&p); err != nil {
				return nil, err
			}
			all := byPath[p.ImportPath]
			p.Imports, p.GoFiles = union(all.Imports, p.Imports), union(all.GoFiles, p.GoFiles)
			byPath[p.ImportPath] = p
		}
	}
	if len(byPath) < len(table) {
		return nil, fmt.Errorf("go list found %d packages, the table has %d", len(byPath), len(table))
	}
	return slices.SortedFunc(maps.Values(byPath), func(a, b pkg) int { return strings.Compare(a.ImportPath, b.ImportPath) }), nil
})

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// TestWhatLiesInOtherModules: go list does not see the packages of a module inside of
// this one, so the table does not hold for them. They are for measuring and testing, and
// no program is built from them.
func TestWhatLiesInOtherModules(t *testing.T) {
	root := filepath.Join("..", "..", "..")
	var found []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && (d.Name()[0] == '.' || d.Name() == "bin") {
			return fs.SkipDir
		}
		if d.Name() == "go.mod" {
			dir, err := filepath.Rel(root, filepath.Dir(path))
			found = append(found, filepath.ToSlash(dir))
			return err
		}
		return nil
	})
	if want := []string{".", "host/internal/foreign", "host/internal/foreign/programs", "host/internal/fueltest", "host/internal/peers"}; err != nil || !slices.Equal(found, want) {
		t.Errorf("there are modules in %q, want %q; %v", found, want, err)
	}
	for _, p := range list(t) {
		for _, imp := range p.Imports {
			if under(imp, module+"host/internal/foreign") || under(imp, module+"host/internal/fueltest") || under(imp, module+"host/internal/peers") {
				t.Errorf("%s imports %s", p.ImportPath, imp)
			}
		}
	}
}

func under(path, tree string) bool { return path == tree || strings.HasPrefix(path, tree+"/") }

// hostInGuests lists the packages of the host that guests may import. There is one list
// of paths that look like secrets, because no file system of the host can refuse a file
// that was committed under such a name. The formats and the patterns of git are read by the host, too.
var hostInGuests = []string{
	"guests/git " + module + "host/policy/paths",
	"guests/git " + module + "host/git/ignore",
	"guests/internal/gitignore " + module + "host/git/ignore",
	"guests/git/repo " + module + "host/git/format",
}

func TestPackagesImportOnlyWhatTheTableAllows(t *testing.T) {
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		switch {
		case under(name, "cmd/stockade"):
			continue // wires everything
		case under(name, "guests"), under(name, "sdk"):
			for _, imp := range p.Imports {
				if (strings.HasPrefix(imp, module+"host") || strings.HasPrefix(imp, module+"cmd")) && !slices.Contains(hostInGuests, name+" "+imp) {
					t.Errorf("%s imports %s: a guest knows nothing of the host", name, imp)
				}
			}
			continue
		}
		allowed, ok := table[name]
		if !ok {
			t.Errorf("%s is not in the table", name)
			continue
		}
		for _, imp := range p.Imports {
			imp, ours := strings.CutPrefix(imp, module)
			if !ours {
				continue
			}
			if !slices.Contains(allowed, imp) {
				t.Errorf("%s imports %s", name, imp)
			}
		}
	}
}

func TestLibrariesStayBehindTheirPackage(t *testing.T) {
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, imp := range p.Imports {
			for library, owner := range libraryOwners {
				if (imp == library || strings.Contains(library, ".") && under(imp, library)) &&
					!slices.ContainsFunc(strings.Fields(owner), func(o string) bool { return under(name, o) }) {
					t.Errorf("%s imports %s, which belongs to %s", name, imp, owner)
				}
			}
		}
	}
}

// dials lists the functions that open a connection or ask a resolver. Only egress may use
// them: a connection made elsewhere would bypass the policy.
var dials = map[string][]string{
	"net": {"Dial", "DialTimeout", "DialTCP", "DialUDP", "DialIP", "DialUnix", "Dialer", "Resolver", "DefaultResolver",
		"LookupHost", "LookupIP", "LookupAddr", "LookupCNAME", "LookupMX", "LookupNS", "LookupPort", "LookupSRV", "LookupTXT",
		"ResolveIPAddr", "ResolveTCPAddr", "ResolveUDPAddr"},
	"net/http":   {"DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm", "ProxyFromEnvironment", "Transport"},
	"crypto/tls": {"Dial", "DialWithDialer", "Dialer"},
	"net/rpc":    {"Dial", "DialHTTP"},
	"net/smtp":   {"Dial", "SendMail"},
}

func TestOnlyEgressDials(t *testing.T) {
	onlyUsed(t, dials, "host/egress", "host/llm/llmtest") // the second is a server in memory, for tests
}

// starts lists the functions that start a process. Only the jail may use them, and the
// code that starts the credential helpers of registries. They find programs by
// themselves: LookPath searches PATH, which a repository can set for whoever enters it.
var starts = map[string][]string{
	"os/exec":               {"Command", "CommandContext", "Cmd"},
	"os":                    {"StartProcess"},
	"syscall":               {"Exec", "ForkExec", "StartProcess", "CreateProcess"},
	"golang.org/x/sys/unix": {"Exec"},
}

func TestOnlyTheJailStartsProcesses(t *testing.T) {
	// The second is the part of the jail that is a program of its own, the third runs
	// tests again, the fourth is an attacker in the jail. The last three are the
	// exceptions: one starts Docker's credential helpers by their fixed paths, one the Go
	// toolchain of an author on the author's own code, for `tool build`, one less by its
	// fixed path. No tool reaches any of them.
	onlyUsed(t, starts, "host/jail", "host/jail/helper", "host/internal/hosttest", "host/jail/probe", "host/registry/oci/credential", "host/registry/author/toolchain", "cmd/stockade/internal/pager")
}

func TestNobodySearchesPATH(t *testing.T) {
	for _, p := range list(t) {
		for _, use := range usedBy(t, p, map[string][]string{"os/exec": {"LookPath"}}) {
			t.Errorf("%s", use)
		}
	}
}

// onlyUsed fails if a package other than owners uses one of the names, or if the first
// owner uses none.
func onlyUsed(t *testing.T, names map[string][]string, owners ...string) {
	t.Helper()
	found := 0
	for _, p := range list(t) {
		name := strings.TrimPrefix(p.ImportPath, module)
		for _, use := range usedBy(t, p, names) {
			if name == owners[0] {
				found++
			} else if !slices.Contains(owners, name) {
				t.Errorf("%s; that is for %s", use, owners[0])
			}
		}
	}
	if found == 0 {
		t.Errorf("nothing was found in %s either: the test does not work", owners[0])
	}
}

// usedBy lists the names that the files of a package use.
func usedBy(t *testing.T, p pkg, names map[string][]string) (out []string) {
	t.Helper()
	for _, file := range p.GoFiles {
		path := filepath.Join(p.Dir, file)
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, use := range uses(f, names) {
			out = append(out, path+" uses "+use)
		}
	}
	return out
}

// uses lists the names, by import path, that a file uses.
func uses(f *ast.File, names map[string][]string) (out []string) {
	imported := map[string]string{} // local name to path
	for _, imp := range f.Imports {
		path := strings.Trim(imp.Path.Value, `"`)
		local := path[strings.LastIndexByte(path, '/')+1:]
		if imp.Name != nil {
			local = imp.Name.Name
		}
		imported[local] = path
		if local == "." && names[path] != nil {
			out = append(out, "all of "+path)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if sel, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := sel.X.(*ast.Ident); ok && slices.Contains(names[imported[x.Name]], sel.Sel.Name) {
				out = append(out, imported[x.Name]+"."+sel.Sel.Name)
			}
		}
		return true
	})
	return out
}

// TestPackagesSayWhatTheyAreFor fails for a package without a package comment.
func TestPackagesSayWhatTheyAreFor(t *testing.T) {
	for _, p := range list(t) {
		documented := len(p.GoFiles) == 0 // a package of tests
		for _, file := range p.GoFiles {
			f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, file), nil, parser.ParseComments|parser.PackageClauseOnly)
			if err != nil {
				t.Fatal(err)
			}
			documented = documented || f.Doc.Text() != ""
		}
		if !documented {
			t.Errorf("%s has no package comment", p.ImportPath)
		}
	}
}
