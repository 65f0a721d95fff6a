package stage

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"strings"

	"github.com/stockade-dev/stockade/host/git"
	"github.com/stockade-dev/stockade/host/rootedfs"
)

// Limits of the files whose content [Set.Changes] remembers for [Set.Refresh]. Others must keep
// their inode and their times until the commit.
const (
	maxRemembered      = 1000
	maxRememberedBytes = 32 << 20 // bytes of all files
)

// rememberContents remembers the contents of files that are to be changed or removed.
func (s *Set) rememberContents(ctx context.Context, all []change) {
	files, left := maxRemembered, int64(maxRememberedBytes)
	for i := range all {
		n := all[i].original
		if n == nil || n.origin.dir == nil || !n.origin.info.Mode().IsRegular() || n.origin.info.Size() > left || files == 0 || ctx.Err() != nil {
			continue
		}
		files, left, n.content = files-1, left-n.origin.info.Size(), nil
		if sum, fi, err := all[i].tree.contentOf(n); err == nil && sameState(fi, n.origin.info) {
			n.content = &sum
		}
	}
}

// sameState reports whether two states are of the same file with the same content and mode.
func sameState(a, b os.FileInfo) bool {
	return difference(a, b, false) == "" && rootedfs.StatOf(a).Ctim == rootedfs.StatOf(b).Ctim
}

// contentOf returns the contentDigest of the file that the host has at the origin of n, and its
// state. It is an error if the file is not regular, has several hard links, or changes meanwhile.
func (tree *Tree) contentOf(n *Node) (sum digest, fi os.FileInfo, err error) {
	cur := tree.Cursor()
	defer cur.Close()
	file, fi, err := cur.openAny(n)
	if err != nil {
		return sum, fi, err
	}
	defer file.Close()
	if err := rootedfs.RefuseHardLinks(file, fi); err != nil || !fi.Mode().IsRegular() || fi.Size() > maxRememberedBytes {
		return sum, fi, errReplaced
	}
	sum, err = contentDigest(file, n.origin.path())
	now, statErr := file.Stat()
	if err = errors.Join(err, statErr); err == nil && !sameState(now, fi) {
		err = errReplaced
	}
	return sum, now, err
}

// contentDigest returns the digest of the content of the file path of a tree. That of an index of
// git leaves out what git updates when it only looks at files.
func contentDigest(file *os.File, path string) (digest, error) {
	content, err := io.ReadAll(io.NewSectionReader(file, 0, maxRememberedBytes+1))
	if path = "/" + path; strings.HasSuffix(path, "/index") && strings.Contains(path, "/.git/") {
		if sum, ok := git.IndexDigest(content); ok {
			return sum, err
		}
	}
	return sha256.Sum256(content), err
}

// Refresh implements policy.Staged.
func (s *Set) Refresh(ctx context.Context) (accepted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.Ended() && s.refresh(ctx)
}

// refresh accepts files of the host that others have replaced or touched since the latest
// [Set.Changes], if their content, mode and owner are the same, as after `git status`. It reports
// whether it has accepted any. The caller holds s.mu.
func (s *Set) refresh(ctx context.Context) (accepted bool) {
	for c := range s.lastListed {
		n := c.original
		if n == nil || n.content == nil || ctx.Err() != nil {
			continue
		}
		sum, fi, err := c.tree.contentOf(n)
		was := n.origin.info
		if err != nil || sum != *n.content || fi.Mode() != was.Mode() || !rootedfs.SameOwner(fi, was) || sameState(fi, was) {
			continue
		}
		n.origin.info, accepted = fi, true
	}
	return accepted
}
