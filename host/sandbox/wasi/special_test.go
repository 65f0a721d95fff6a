//go:build unix

package wasi

import (
	"os"
	"strings"
	"testing"

	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/stage"
)

// plantSpecial makes the special paths of the tests below.
func plantSpecial(w *world) {
	w.File("ws/.git/HEAD", "ref: refs/heads/main")
	w.File("ws/.git/config", "[core]")
	w.File("ws/.git/hooks/pre-push", "true")
	w.File("ws/.git/modules/m/config", "[core]")
	w.File("ws/sub/deep/er/.git/HEAD", "ref")
	w.File("ws/sub/deep/er/.git/config", "[core]")
	w.File("ws/worktree/.git", "gitdir: ../real")
	w.File("ws/real/HEAD", "ref")
	w.File("ws/real/config", "[core]")
	w.Dir("ws/real/hooks")
	w.File("ws/.stockade/policy.toml", "")
	w.File("ws/.config/fish/config.fish", "")
	w.File("ws/.env", canary)
	w.File("ws/.ssh/any", canary)
	w.File("ws/agent.toml", "")
	w.File("ws/evil/hooks/pre-push", "evil")
	w.Dir("ws/evil/empty")
	w.Dir("ws/no-head/.git/modules/m")
	w.Link("ws/hooks-link", ".git/hooks")
	w.Link("ws/git-link", ".git")
	w.Link("ws/config-link", ".git/config")
	w.Link("ws/up", "d/../.git")
	w.Link("ws/env-link", ".env")
	w.Link("ws/env-chain", "d/../env-link")
	w.Link("ws/self", ".")
}

// specialModes opens ws in every way that lets a guest write.
func specialModes(w *world) map[string]func() (*guestFS, *stage.Set) {
	open := func(masked ...string) func() (*guestFS, *stage.Set) {
		return func() (*guestFS, *stage.Set) { return w.openMasked(masked, w.rw("ws")), nil }
	}
	staged := func(masked ...string) func() (*guestFS, *stage.Set) {
		return func() (*guestFS, *stage.Set) { return w.openStaged(nil, masked, w.rw("ws")) }
	}
	return map[string]func() (*guestFS, *stage.Set){
		"rw": open(), "guarded": open("ws/masked"), "staged": staged(), "staged and guarded": staged("ws/masked"),
	}
}

// Every operation on a closed path is EPERM, leaves the host's files as they are, and is
// recorded with its reason.
func TestClosedPathsAreNotChanged(t *testing.T) {
	open := func(p string, flag Flag) func(*guestFS) Errno {
		return func(g *guestFS) Errno { return g.try("ws/"+p, flag) }
	}
	mkdir := func(p string) func(*guestFS) Errno {
		return func(g *guestFS) Errno { return g.Mkdir(g.name("ws/" + p)) }
	}
	unlink := func(p string) func(*guestFS) Errno {
		return func(g *guestFS) Errno { return g.Unlink(g.name("ws/" + p)) }
	}
	rmdir := func(p string) func(*guestFS) Errno {
		return func(g *guestFS) Errno { return g.Rmdir(g.name("ws/" + p)) }
	}
	rename := func(from, to string) func(*guestFS) Errno {
		return func(g *guestFS) Errno { return g.Rename(g.name("ws/"+from), g.name("ws/"+to)) }
	}
	times := func(p string, follow bool) func(*guestFS) Errno {
		return func(g *guestFS) Errno { return g.SetTimes(g.name("ws/"+p), follow, 1e9, 1e9) }
	}
	fdTimes := func(p string, flag Flag) func(*guestFS) Errno {
		return func(g *guestFS) Errno {
			h, errno := g.Open(g.name("ws/"+p), flag)
			if errno != 0 {
				return errno
			}
			defer h.Close()
			return h.SetTimes(1e9, 1e9)
		}
	}
	const make = WriteOnly | Create
	for what, do := range map[string]func(*guestFS) Errno{
		"create":                            open(".git/hooks/pre-commit", make),
		"create for reading":                open(".git/hooks/pre-commit", ReadOnly|Create),
		"create exclusively":                open(".git/hooks/pre-commit", make|Exclusive),
		"write":                             open(".git/hooks/pre-push", WriteOnly),
		"append":                            open(".git/hooks/pre-push", WriteOnly|Append),
		"truncate":                          open(".git/hooks/pre-push", ReadOnly|Truncate),
		"read and write":                    open(".git/modules/m/config", ReadWrite),
		"without directory":                 open(".stockade/new/deep", make),
		"before it exists":                  open("sub/.gitmodules", make),
		"our own, new":                      open("sub/agent.toml", make),
		"our own":                           open("agent.toml", WriteOnly|Truncate),
		"other case":                        open(".GIT/Hooks/pre-commit", make),
		"other case of ours":                open("Agent.TOML", make),
		"what nobody sees":                  open(".g\u200cit", make),
		"wide letters":                      open("\uff0e\uff47it", make),
		"dot at the end":                    open("agent.toml.", make),
		"stream":                            open("agent.toml::$DATA", make),
		"short name":                        open("GIT~1", make),
		"deep":                              open("sub/deep/er/.git/config", WriteOnly),
		"repository of another name":        open("real/config", WriteOnly),
		"hook of a repository":              open("real/hooks/x", make),
		"attributes of a repository":        rename("d", "real/info"),
		"file that leads to a repository":   open("worktree/.git", WriteOnly),
		"another that does":                 open("d/.git", make),
		"by a link to the directory":        open("hooks-link/pre-commit", make),
		"by a link above":                   open("git-link/hooks/pre-commit", make),
		"by a link to the file":             open("config-link", WriteOnly),
		"by a link with dots":               open("up/config", WriteOnly|Truncate),
		"by a link to here":                 open("self/self/.git/config", WriteOnly),
		"make the directory":                mkdir("d/.git"),
		"make ours":                         mkdir("d/.stockade"),
		"make a hook":                       mkdir(".git/hooks/x"),
		"remove":                            unlink(".git/hooks/pre-push"),
		"remove by a link":                  unlink("git-link/config"),
		"remove ours":                       unlink(".stockade/policy.toml"),
		"remove the directory":              rmdir("real/hooks"),
		"rename from":                       rename(".git/hooks/pre-push", "d/x"),
		"rename onto":                       rename("evil/hooks/pre-push", ".git/hooks/pre-push"),
		"rename to what is not there":       rename("evil/hooks/pre-push", ".git/hooks/pre-commit"),
		"rename to ours":                    rename("f.txt", "d/agent.toml"),
		"rename by a link":                  rename("f.txt", "hooks-link/x"),
		"rename the directory":              rename(".git/hooks", "d/hooks"),
		"rename a directory onto":           rename("evil/hooks", "real/hooks"),
		"rename a directory to":             rename("evil", "d/.git"),
		"rename a parent":                   rename(".git", "d/x"),
		"rename a parent of submodules":     rename(".git/modules", "d/x"),
		"rename what could hold submodules": rename("no-head/.git/modules", "d/x"),
		"rename to what could hold them":    rename("evil", "no-head/.git/info"),
		"rename a submodule in":             rename("evil", ".git/modules/n"),
		"rename a directory to ours":        rename("evil", "d/.Stockade"),
		"rename ours":                       rename(".stockade", "d/x"),
		"times":                             times(".git/config", true),
		"times of what a link leads to":     times("config-link", true),
		"times of a directory":              times(".git/hooks", false),
		"times of an open directory":        fdTimes(".git/hooks", DirectoryOnly),
		"times of an open file":             fdTimes(".git/hooks/pre-push", ReadOnly),
		"times of an open file, by a link":  fdTimes("hooks-link/pre-push", ReadOnly),
		"hard link":                         func(g *guestFS) Errno { return g.Link(g.name("ws/.git/config"), g.name("ws/x")) },
		"symbolic link":                     func(g *guestFS) Errno { return g.Symlink("../evil", g.name("ws/.git/hooks/x")) },
		"replace by a link": func(g *guestFS) Errno {
			g.Unlink(g.name("ws/.git/config"))
			return g.Symlink("../evil", g.name("ws/.git/config"))
		},
		"without HEAD": func(g *guestFS) Errno {
			g.Unlink(g.name("ws/real/HEAD"))
			return g.try("ws/real/config", WriteOnly)
		},
		"in a repository that was moved": func(g *guestFS) Errno {
			g.Rename(g.name("ws/real"), g.name("ws/d/real"))
			errno := g.try("ws/d/real/config", WriteOnly)
			g.Rename(g.name("ws/d/real"), g.name("ws/real"))
			return errno
		},
	} {
		w := newWorld(t)
		plantSpecial(w)
		for mode, open := range specialModes(w) {
			t.Run(what+"/"+mode, func(t *testing.T) {
				if mode == "rw" || mode == "guarded" {
					// Times are compared too, and such a guest changes them for a while.
					if what == "in a repository that was moved" {
						return
					}
				}
				before := w.State()
				g, stage := open()
				got := do(g)
				missing := got == ENOENT && (mode == "guarded" || mode == "staged and guarded") // of the directory, which is looked up first there
				if !missing {
					wantErrno(t, what, got, EPERM)
				}
				if !missing && len(g.Refusals()) == 0 && !strings.HasSuffix(what, " link") {
					t.Error("nobody knows why")
				}
				if stage != nil {
					changes, err := stage.Changes(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					for _, c := range changes {
						if s, special := paths.SpecialForChange(c.Path); special && s.Care == paths.Closed {
							t.Errorf("%s is staged: %s", c.Path, c.Kind)
						}
					}
					if what == "without HEAD" { // which is staged, and asked about
						return
					}
					if err := stage.Commit(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				w.CheckUnchanged(before)
			})
		}
	}
}

// A path that needs a question is changed on a stage only.
func TestAskedPathsAreChangedOnAStageOnly(t *testing.T) {
	w := newWorld(t)
	plantSpecial(w)
	for mode, open := range specialModes(w) {
		g, stage := open()
		want := EPERM
		if stage != nil {
			want = 0
		}
		before := w.State()
		wantErrno(t, mode, g.Mkdir(g.name("ws/.vscode")), want)
		wantErrno(t, mode, g.try("ws/.BASHRC", WriteOnly|Create), want)
		wantErrno(t, mode, g.try("ws/d/HEAD", WriteOnly|Create), want)
		wantErrno(t, mode, g.Rename(g.name("ws/.config/fish"), g.name("ws/x")), want)
		wantErrno(t, mode, g.Rename(g.name("ws/evil"), g.name("ws/.Codex")), want)
		w.CheckUnchanged(before)
		if stage != nil {
			if err := stage.Drop(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A file that looks like a secret is not read, by any name, in any mount.
func TestSecretFilesAreNotRead(t *testing.T) {
	w := newWorld(t)
	plantSpecial(w)
	w.File("ws/d/server.PEM", canary)
	w.File("ws/d/.netrc", canary)
	modes := specialModes(w)
	modes["ro"] = func() (*guestFS, *stage.Set) { return w.open(w.ro("ws")), nil }
	modes["ro and guarded"] = func() (*guestFS, *stage.Set) { return w.openMasked([]string{"ws/masked"}, w.ro("ws")), nil }
	for mode, open := range modes {
		t.Run(mode, func(t *testing.T) {
			before := w.State()
			names := []string{".env", "env-link", "env-chain", "self/.env", "self/self/env-link", ".ssh/any", "d/server.PEM", "d/.netrc", "d/../.env"}
			for _, name := range names {
				g, _ := open()
				wantErrno(t, name, g.try("ws/"+name, ReadOnly), EPERM)
				if len(g.Refusals()) != 1 {
					t.Errorf("%s: refused %v", name, g.Refusals())
				}
				if g.mounts[0].write {
					wantErrno(t, name+" for both", g.try("ws/"+name, ReadWrite), EPERM)
				}
				wantErrno(t, name+", its content", contentErrno(g, name), EPERM)
				if view, ok := g.View(4, func(uint64) {}); ok {
					c, errno := view.OpenContent(g.name("ws/" + name))
					wantErrno(t, name+", in a view", errno, EPERM)
					if errno == 0 {
						c.Close()
					}
					view.Close()
				}
			}
			// Nor under another name.
			g, stage := open()
			if g.mounts[0].write {
				wantErrno(t, "rename", g.Rename(g.name("ws/.env"), g.name("ws/x.txt")), EPERM)
				wantErrno(t, "rename the directory", g.Rename(g.name("ws/.ssh"), g.name("ws/x")), EPERM)
			}
			// For a link, its own name does not matter.
			if _, errno := g.Stat(g.name("ws/env-link")); errno != 0 {
				t.Error(errno)
			}
			if stage != nil {
				if err := stage.Drop(); err != nil {
					t.Fatal(err)
				}
			}
			w.CheckUnchanged(before)
		})
	}
}

func contentErrno(g *guestFS, name string) Errno {
	c, errno := g.OpenContent(g.name("ws/" + name))
	if errno == 0 {
		c.Close()
	}
	return errno
}

// A guest can write a secret without reading it, and read a secret that it has written
// itself.
func TestSecretFilesAreWritten(t *testing.T) {
	w := newWorld(t)
	plantSpecial(w)
	g, stage := w.openStaged(nil, nil, w.rw("ws"))
	wantErrno(t, "create", g.try("ws/d/.env", WriteOnly|Create), 0)
	wantErrno(t, "read back", g.try("ws/d/.env", ReadOnly), 0)
	wantErrno(t, "replace", g.Rename(g.name("ws/d/.env"), g.name("ws/.env")), 0)
	wantErrno(t, "read back what has replaced it", g.try("ws/.env", ReadOnly), 0)
	if err := stage.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(w.Path("ws/.env")); err != nil || string(got) != "overwritten" {
		t.Errorf("%q, %v", got, err)
	}
}

// Plain files and directories work as before, behind links too.
func TestWhatIsNotSpecialIsUsed(t *testing.T) {
	w := newWorld(t)
	plantSpecial(w)
	w.File("ws/.env.example", "KEY=")
	w.Dir("ws/.env.d")
	for mode, open := range specialModes(w) {
		g, stage := open()
		for _, name := range []string{"f.txt", "self/f.txt", "self/self/d/g.txt", ".env.example", ".env.d", ".git/HEAD", "git-link/hooks/pre-push"} {
			wantErrno(t, mode+" "+name, g.try("ws/"+name, ReadOnly), 0)
		}
		wantErrno(t, mode+" a part of .git", g.try("ws/.git/COMMIT_EDITMSG", WriteOnly|Create), 0)
		wantErrno(t, mode+" hooks elsewhere", g.try("ws/evil/hooks/x", WriteOnly|Create), 0)
		if refused := g.Refusals(); len(refused) > 0 {
			t.Errorf("%s: %v", mode, refused)
		}
		if stage != nil {
			if err := stage.Drop(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// A mount can be inside a special directory.
func TestMountsInsideOfSpecialDirectories(t *testing.T) {
	w := newWorld(t)
	plantSpecial(w)
	before := w.State()
	for dir, name := range map[string]string{"ws/.git": "hooks/x", "ws/.git/hooks": "x", "ws/real": "config", "ws/real/hooks": "x", "ws/.stockade": "x", "ws/.git/modules": "m/hooks"} {
		g := w.open(w.rw(dir))
		wantErrno(t, dir, g.try(dir+"/"+name, WriteOnly|Create), EPERM)
		g, _ = w.openStaged(nil, nil, w.rw(dir))
		wantErrno(t, dir+", staged", g.try(dir+"/"+name, WriteOnly|Create), EPERM)
	}
	wantErrno(t, "a key", w.open(w.ro("ws/.ssh")).try("ws/.ssh/any", ReadOnly), EPERM)
	w.CheckUnchanged(before)
}
