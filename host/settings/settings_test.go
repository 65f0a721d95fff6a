package settings

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stockade-dev/stockade/host/config"
	"github.com/stockade-dev/stockade/host/config/policyfile"
	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/network"
)

// bounds is a policy.toml of the test; a nil list is no bound.
type bounds struct {
	directories, hosts, urls []string
	timeout                  int // seconds; 0 is no bound
}

func (b bounds) file() string {
	var s strings.Builder
	list := func(table, key string, values []string) {
		if values != nil {
			fmt.Fprintf(&s, "[%s]\n%s = [\"%s\"]\n", table, key, strings.Join(values, `", "`))
		}
	}
	list("files", "directories", b.directories)
	list("network", "hosts", b.hosts)
	list("models", "base_urls", b.urls)
	if b.timeout > 0 {
		fmt.Fprintf(&s, "[limits]\ntool_timeout = \"%ds\"\n", b.timeout)
	}
	if s.Len() == 0 {
		return "require_confirmation = true\n"
	}
	return s.String()
}

// directory reports whether a directory may be seen and written. It does not use the code
// of the policy.
func (b bounds) directory(dir string) (read, write bool) {
	if b.directories == nil {
		return true, true
	}
	for _, d := range b.directories {
		d, readOnly := strings.CutSuffix(d, ":ro")
		if dir == d || strings.HasPrefix(dir, d+"/") {
			read, write = true, write || !readOnly
		}
	}
	return read, write
}

func (b bounds) url(url string) bool { return b.urls == nil || slices.Contains(b.urls, url) }

func (b bounds) host(host string) bool { return b.hosts == nil || slices.Contains(b.hosts, host) }

// A trusted project asks for as much as it can. It never gets more than the administrator
// and the user both permit.
func TestATrustedProjectStaysBelowEveryCeiling(t *testing.T) {
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(root, name) }
	for _, dir := range []string{"etc", "home/.config/stockade", "work", "a/b", "c"} {
		if err := os.MkdirAll(path(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write := func(name, text string) {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	dirs := []string{path("a"), path("a/b"), path("c")}
	hosts := []string{"a.example", "b.example", "c.example"}
	urls := []string{"https://a.example/v1", "https://b.example/v1"}

	r := rand.New(rand.NewPCG(3, 4))
	some := func(from []string, suffix string) []string {
		var out []string
		for _, s := range from {
			switch r.IntN(3) {
			case 0:
				out = append(out, s)
			case 1:
				out = append(out, s+suffix)
			}
		}
		return out
	}
	ceiling := func() bounds {
		b := bounds{timeout: r.IntN(3) * 10, hosts: some(hosts, ""), urls: some(urls, "")}
		if r.IntN(2) == 0 {
			// The workspace is always permitted here.
			b.directories = append([]string{path("work")}, some(dirs, ":ro")...)
		}
		return b
	}
	seen := map[string]bool{}
	for range 150 {
		admin, user := ceiling(), ceiling()
		mounts, allow, url := some(dirs, ":ro"), some(hosts, ""), urls[r.IntN(len(urls))]
		mine := 1 + r.IntN(60)
		write("etc/policy.toml", admin.file())
		write("home/.config/stockade/policy.toml", user.file())
		write("home/.config/stockade/agent.toml", fmt.Sprintf("tool_timeout = \"%ds\"\n", mine))
		write("work/agent.toml", fmt.Sprintf("tool_timeout = \"1h\"\nmounts = [%s]\nnetwork.allow = [%s]\nmodel.base_url = %q\n",
			quoted(mounts), quoted(allow), url))

		opts := Options{
			Workspace: path("work"), Env: func(name string) string { return map[string]string{"HOME": path("home")}[name] },
			Administrator: policyfile.Place{Path: path("etc/policy.toml"), Root: path("etc"), Owner: os.Getuid()},
		}
		dirs, err := FindDirs(opts.Env)
		if err != nil {
			t.Fatal(err)
		}
		f, err := config.Load(path("work/agent.toml"), config.Project)
		if err != nil {
			t.Fatal(err)
		}
		if err := dirs.Trust(f); err != nil {
			t.Fatal(err)
		}
		s, err := Load(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(s.Config.Source("model.base_url"), ", trusted") {
			t.Fatal("the file is not trusted")
		}

		var got []policy.Mount
		for _, m := range s.Config.Mounts {
			kept, ok, _ := s.Ceiling.PermitsMount(policy.Mount{Host: m.Path, Write: !m.ReadOnly})
			if !ok {
				continue
			}
			got = append(got, kept)
			for who, b := range map[string]bounds{"administrator": admin, "user": user} {
				if read, write := b.directory(kept.Host); !read || kept.Write && !write {
					t.Errorf("tools are shown %s, against the %s's %q", kept, who, b.directories)
				}
			}
			seen["mounted"] = true
		}
		for _, m := range mounts {
			dir, _ := strings.CutSuffix(m, ":ro")
			if !slices.ContainsFunc(got, func(g policy.Mount) bool { return g.Host == dir }) {
				seen["not mounted"] = true
			}
		}

		rules, err := s.NetRules(nil)
		if err != nil {
			t.Fatal(err)
		}
		left := s.Ceiling.RestrictNetwork(network.New(rules))
		for _, host := range hosts {
			ok := left.Decide(host, 443, network.HTTPS).Err() == nil
			if ok && !(admin.host(host) && user.host(host) && slices.Contains(allow, host)) {
				t.Errorf("%s may be talked to, against %q and %q", host, admin.hosts, user.hosts)
			}
			seen[fmt.Sprint("host ", ok)] = true
		}
		ok, _ := policy.Permits(s.Ceiling.BaseURLs, s.Config.Model.BaseURL)
		if ok && !(admin.url(url) && user.url(url)) {
			t.Errorf("%s is asked, against %q and %q", url, admin.urls, user.urls)
		}
		seen[fmt.Sprint("model ", ok)] = true

		most := mine
		for _, b := range []bounds{admin, user} {
			if b.timeout > 0 {
				most = min(most, b.timeout)
			}
		}
		if s.Config.ToolTimeout > time.Duration(most)*time.Second {
			t.Errorf("a call may take %s, against %d s", s.Config.ToolTimeout, most)
		}
	}
	for _, what := range []string{"mounted", "not mounted", "host true", "host false", "model true", "model false"} {
		if !seen[what] {
			t.Errorf("there was no case of %q", what)
		}
	}
}

func quoted(values []string) string {
	var out []string
	for _, v := range values {
		out = append(out, fmt.Sprintf("%q", v))
	}
	return strings.Join(out, ", ")
}
