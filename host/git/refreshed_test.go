package git

import (
	"bytes"
	"crypto/sha1"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stockade-dev/stockade/host/tool"
)

// The indexes of all changes of a command together are read within one limit.
func TestNegligibleIndexesAreLimited(t *testing.T) {
	dir := t.TempDir()
	sh(t, dir, "git init -q; echo 1 > a; git add a")
	data, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
	if err != nil {
		t.Fatal(err)
	}
	v := &tool.Version{Size: int64(len(data)), Mode: 0o644, Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }}
	c := tool.Change{Path: "/ws/.git/index", Kind: tool.Modified, Before: v, After: v}
	need := 2 * (v.Size + int64(len("a")))
	if left := (&budget{index: 2*need - 1}); !negligible(c, left) || negligible(c, left) {
		t.Errorf("of a limit of %d bytes %d are left", 2*need-1, left.index)
	}
}

// Whoever looks at a worktree does not change the digest of its index; what is staged does.
func TestTheDigestOfAnIndexLeavesOutWhatGitHasLookedAt(t *testing.T) {
	for _, how := range []string{
		"git init -q", "git init -q --object-format=sha256", "git init -q; git config index.version 4",
		"git init -q; git config core.untrackedCache true; git config status.showUntrackedFiles all",
		"git init -q; git config index.threads 2",
	} {
		t.Run(how, func(t *testing.T) {
			dir := t.TempDir()
			digest := func() (raw, sum string) {
				t.Helper()
				data, err := os.ReadFile(filepath.Join(dir, ".git", "index"))
				if err != nil {
					t.Fatal(err)
				}
				got, ok := IndexDigest(data)
				if !ok {
					t.Fatal("it is no index")
				}
				return string(data), string(got[:])
			}
			sh(t, dir, how+"; mkdir d; for f in a d/b d/c; do echo 1 > $f; done; git add .; git commit -qm one; git status; git update-index --refresh")
			for _, look := range []string{
				"touch -d @1000000000 a; git status", "cp d/b n; mv n d/b; git status", "touch new; touch -d @1000000001 a; git status", "touch -d @999999999 d/c; git diff --stat; git update-index --refresh",
				"touch -d @1000000002 a d/b; git stash list; git describe --always --dirty",
			} {
				raw, was := digest()
				sh(t, dir, look)
				if now, is := digest(); is != was || now == raw {
					t.Errorf("after %s: changed %t, the digest changed %t", look, now != raw, is != was)
				}
			}
			for _, change := range []string{
				"echo 2 > a; git add a", "git update-index --chmod=+x a", "git update-index --assume-unchanged a", "git update-index --skip-worktree d/b", "git rm -q --cached d/c",
				"git add -N new", "git mv -f d/b moved", `echo "100644 $(git hash-object -w a) 2	both" | git update-index --index-info`,
			} {
				_, was := digest()
				sh(t, dir, change)
				if _, is := digest(); is == was {
					t.Errorf("%s changes nothing", change)
				}
			}
			raw, _ := digest()
			for i := 0; i < len(raw); i += 5 { // nothing that is cut or changed has a digest
				bad := []byte(raw)
				bad[i] ^= 1
				if _, ok := IndexDigest(bad); ok {
					t.Errorf("byte %d changed", i)
				}
				if _, ok := IndexDigest(bad[:i]); ok {
					t.Errorf("cut to %d bytes", i)
				}
				body := append([]byte(nil), bad[:max(len(bad)-sha1.Size, 0)]...)
				sum := sha1.Sum(body)
				_, _ = IndexDigest(append(body, sum[:]...)) // it does not panic
			}
		})
	}
}
