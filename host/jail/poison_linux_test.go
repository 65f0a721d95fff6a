package jail

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/egress"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
	"github.com/stockade-dev/stockade/host/services"
	"github.com/stockade-dev/stockade/host/stage"
)

// standing holds the rights in which commands that share caches differ.
type standing struct {
	arguments map[string]any
	changes   policy.ChangesMode
	reads     []string // files that look like secrets
}

var standings = map[string]standing{
	"unasked":   {changes: policy.ChangesStaged},
	"no change": {changes: policy.ChangesNone},
	"direct":    {changes: policy.ChangesDirect},
	"network":   {changes: policy.ChangesDirect, arguments: map[string]any{"network": true}},
	"secret":    {changes: policy.ChangesStaged, reads: []string{".env"}},
}

// as runs a command with a standing. If its call has to wait for an answer, the test gives
// the answer.
func (s *stager) as(t *testing.T, name, dir, command string, answer bool) services.CommandResult {
	t.Helper()
	of := standings[name]
	rule, err := network.ParseRule("example.com")
	if err != nil {
		t.Fatal(err)
	}
	opts := policy.Options{Mounts: []policy.Mount{{Host: dir, Write: true}}, WhyNotStaged: s.WhyNotStaged, Changes: of.changes, Network: network.New([]network.Rule{rule})}
	if of.reads != nil {
		opts.Rules = append(opts.Rules, policy.Rule{Effect: policy.Allow, Tool: "bash", Reads: of.reads, Source: policy.SourceFlag})
	}
	arguments := map[string]any{"command": command}
	for k, v := range of.arguments {
		arguments[k] = v
	}
	cmd := bash(dir, command)
	cmd.OnOutput, cmd.MergeStderr = s.show, s.show != nil
	d := decisionOf(t, dir, arguments, opts)
	grant, err := d.Rehearse()
	if !d.CanRehearse() {
		if d.Effect() == policy.Allow {
			grant, err = d.Grant()
		} else {
			grant, err = d.Approve(policy.Answer{Allow: true}, 1)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if of.changes != policy.ChangesDirect {
		if cmd.Stage, err = stage.New(&stage.Options{Dir: s.area.Dir()}); err != nil {
			t.Fatal(err)
		}
	}
	out, err := s.Run(t.Context(), grant, cmd)
	if err != nil {
		t.Fatal(err)
	}
	if cmd.Stage != nil {
		if answer {
			cmd.Stage.KeepCaches()
		}
		if err := cmd.Stage.Drop(); err != nil {
			t.Error(err)
		}
	}
	return out
}

func proxy(t *testing.T) Proxy {
	t.Helper()
	way, err := egress.New(egress.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return way
}

// TestWhoSharesCaches: commands that write to a cache, and commands that see their files.
func TestWhoSharesCaches(t *testing.T) {
	if policy.Tier(*tier) < policy.MaxTier {
		return // nothing is layered
	}
	home, dir := newHome(t)
	files(t, dir, map[string]string{".env": "x"})
	layers := newLayers(t)
	s := newStager(t, Options{Home: home, LayersDir: layers, Caches: CacheNames, Proxy: proxy(t)})
	other := newStager(t, Options{Home: home, LayersDir: layers, Caches: CacheNames, Proxy: proxy(t)}) // of another process
	const sources = "go/pkg/mod .cargo/registry .cargo/git .npm/_cacache .npm/_npx .cache/pip"
	writes := map[string]struct {
		by, to string
		no     bool
		seenBy string // which standings see it
	}{
		"1":  {"unasked", sources, false, ""},
		"2":  {"no change", sources, false, ""},
		"3":  {"direct", sources, false, ""},
		"4":  {"secret", sources, false, ""},
		"5":  {"network", sources, false, "unasked, no change, direct, network, secret"},
		"6":  {"unasked", ".cache/go-build", false, "unasked, no change"},
		"7":  {"no change", ".cache/go-build", false, "unasked, no change"},
		"8":  {"unasked", ".cache/go-build", true, ""},
		"9":  {"no change", ".cache/go-build", true, ""},
		"10": {"direct", ".cache/go-build", false, "direct, network, secret"},
		"11": {"network", ".cache/go-build", false, "direct, network, secret"},
		"12": {"secret", ".cache/go-build", false, ""},
	}
	for mark, c := range writes {
		ended(t, s.as(t, c.by, dir, "cd ~ && for d in "+c.to+"; do echo x >$d/mark-"+mark+"; done", !c.no), 0)
	}
	for reader := range standings {
		for _, j := range []*stager{s, other} {
			out := j.as(t, reader, dir, "cd ~ && ls "+sources+" .cache/go-build", true)
			for mark, c := range writes {
				got, want := strings.Count(string(out.Stdout), "mark-"+mark+"\n"), 0
				if strings.Contains(c.seenBy, reader) {
					want = len(strings.Fields(c.to))
				}
				if got != want {
					t.Errorf("of what %s wrote to %s (no: %t) %s sees %d, want %d", c.by, c.to, c.no, reader, got, want)
				}
			}
		}
	}
	if got := treeOf(t, home, false); strings.Contains(strings.Join(keys(got), "\n"), "mark-") {
		t.Error("the home was written to")
	}
}

func keys(m map[string]string) (out []string) {
	for k := range m {
		out = append(out, k)
	}
	return out
}

// goHome returns a home whose module cache has example.com/m, and a program that needs it.
func goHome(t *testing.T) (home, dir string) {
	t.Helper()
	home, dir = t.TempDir(), t.TempDir()
	t.Cleanup(func() { removeTree(home) })
	registry := t.TempDir()
	files(t, registry, map[string]string{
		"example.com/m/@v/v1.0.0.info": `{"Version":"v1.0.0"}`,
		"example.com/m/@v/v1.0.0.mod":  "module example.com/m\n",
		"example.com/m/@v/list":        "v1.0.0\n",
	})
	f, err := os.Create(filepath.Join(registry, "example.com/m/@v/v1.0.0.zip"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, text := range map[string]string{"go.mod": "module example.com/m\n", "m.go": "package m\n\nconst Says = \"good\"\n"} {
		w, err := z.Create("example.com/m@v1.0.0/" + name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	files(t, dir, map[string]string{
		"go.mod": "module example.com/p\n\ngo 1.20\n\nrequire example.com/m v1.0.0\n",
		"p.go":   "package p\n\nimport \"example.com/m\"\n\nvar Says = m.Says\n", // which needs no standard library
	})
	outside := exec.Command("go", "mod", "tidy")
	outside.Dir, outside.Env = dir, []string{"HOME=" + home, "PATH=" + systemPath, "GOPROXY=file://" + registry, "GONOSUMDB=*", "GOFLAGS=-mod=mod"}
	if out, err := outside.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return home, dir
}

// A command without approval changes no file that a later command compiles.
func TestSourcesCannotBePoisoned(t *testing.T) {
	if policy.Tier(*tier) < policy.MaxTier {
		return // sources can only be read
	}
	home, dir := goHome(t)
	s := newStager(t, Options{Home: home, LayersDir: newLayers(t), Caches: CacheNames, Proxy: proxy(t)})
	const build = "go build -o $TMPDIR/p.a . && grep -ao 'good\\|evil' ~/go/pkg/mod/example.com/m@v1.0.0/m.go $TMPDIR/p.a | sed 's/.*://' | sort -u"
	poison := "chmod -R u+w ~/go/pkg/mod && find ~/go/pkg/mod -name m.go -exec sed -i s/good/evil/ {} + && " + build
	if out := s.as(t, "unasked", dir, poison, true); string(out.Stdout) != "evil\n" {
		t.Fatalf("the command itself does not see what it wrote: %s", describe(out))
	}
	for name := range standings {
		if out := s.as(t, name, dir, build, true); string(out.Stdout) != "good\n" {
			t.Errorf("%s builds something else: %s", name, describe(out))
		}
	}
	// Nor does what it has put into a build cache reach a command with more rights.
	spoil := "find ~/.cache/go-build -name '*-d' -exec sh -c 'chmod u+w $0; echo spoiled >$0' {} \\; ; find ~/.cache/go-build -name '*-d' | xargs cat | grep -c spoiled"
	if out := s.as(t, "unasked", dir, spoil, true); string(out.Stdout) == "0\n" {
		t.Fatalf("nothing was spoiled: %s", describe(out))
	}
	const look = "grep -l spoiled -r ~/.cache/go-build | wc -l"
	for name, want := range map[string]bool{"unasked": true, "no change": true, "direct": false, "network": false, "secret": false} {
		if out := s.as(t, name, dir, look, true); (string(out.Stdout) != "0\n") != want {
			t.Errorf("%s sees what was spoiled: %t: %s", name, !want, describe(out))
		}
	}
}

// A command that fills a cache is ended, and its writes are gone. Earlier content stays.
func TestCachesAreBounded(t *testing.T) {
	if policy.Tier(*tier) < policy.MaxTier {
		return
	}
	defer func(q, o diskUse) { layerQuota, othersShare = q, o }(layerQuota, othersShare)
	home, dir := newHome(t)
	for name, c := range map[string]struct {
		quota   diskUse
		command string
	}{
		"bytes":                 {diskUse{64 << 20, 400_000}, "dd if=/dev/zero of=big bs=1M count=4000 status=none"},
		"names":                 {diskUse{4 << 30, 2000}, "for i in $(seq 200000); do : >$i; done"},
		"directories":           {diskUse{4 << 30, 2000}, "for i in $(seq 200); do mkdir -p $i/$(seq -s / 400); done; sleep 60"},
		"all layers together":   {diskUse{64 << 20, 400_000}, "for d in go/pkg/mod .cargo/registry .cargo/git .npm/_cacache; do dd if=/dev/zero of=$HOME/$d/big bs=1M count=60 status=none; done; sleep 60"},
		"a file without a name": {diskUse{64 << 20, 2000}, "exec 3>gone; rm gone; dd if=/dev/zero bs=1M count=700 status=none >&3; sleep 20"},
		"a place to hide in":    {diskUse{64 << 20, 2000}, "mkdir h; cd h; for i in $(seq 20); do dd if=/dev/zero of=$i bs=1M count=50 status=none; chmod 300 .; done; sleep 60"},
	} {
		t.Run(name, func(t *testing.T) {
			layerQuota, othersShare = c.quota, diskUse{256 << 20, 100_000}
			s := newStager(t, Options{Home: home, LayersDir: newLayers(t), Caches: CacheNames})
			ended(t, s.as(t, "unasked", dir, "echo kept >~/.cache/go-build/before", true), 0)
			out := s.as(t, "unasked", dir, "cd ~/.cache/go-build; echo x >after; "+c.command, true)
			if out.Signal == nil || !strings.Contains(strings.Join(out.Notes, "\n"), "it has written") {
				t.Errorf("%s, %q", describe(out), out.Notes)
			}
			if out := s.as(t, "unasked", dir, "cd ~; ls .cache/go-build go/pkg/mod/big .cargo/registry/big", true); strings.Contains(string(out.Stdout), "after") || strings.Contains(string(out.Stdout), "big") || !strings.Contains(string(out.Stdout), "before") {
				t.Errorf("afterwards there is %s", describe(out))
			}
		})
	}
}
