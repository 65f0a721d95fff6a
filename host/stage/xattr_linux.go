package stage

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// Names of the extended attributes that hold ACLs. The default ACL of a directory becomes the
// ACL of new files in it, whatever the umask is.
const (
	accessACL  = "system.posix_acl_access"
	defaultACL = "system.posix_acl_default"
)

type xattrs map[string][]byte

// maxXattr is the limit of Linux for the bytes of a value, and of a list of names.
const maxXattr = 64 << 10

// tracked reports whether an attribute is an ACL or another attribute that a command can set,
// but not one of the overlay.
func tracked(name string) bool {
	return strings.HasPrefix(name, "user.") && !strings.HasPrefix(name, overlayXattr) || name == accessACL || name == defaultACL || name == "security.capability"
}

// xattrsOf reads the tracked attributes of a file, maybe none. copied reports whether the
// overlay has copied the file from the host. It does not follow a link at the end of path.
func xattrsOf(path string) (all xattrs, copied bool, err error) {
	list, err := readXattr(func(buf []byte) (int, error) { return unix.Llistxattr(path, buf) })
	if err != nil {
		return nil, false, err
	}
	for name := range strings.SplitSeq(string(list), "\x00") {
		copied = copied || name == originXattr
		if !tracked(name) {
			continue
		}
		value, err := readXattr(func(buf []byte) (int, error) { return unix.Lgetxattr(path, name, buf) })
		if err != nil {
			return nil, false, fmt.Errorf("attribute %s: %w", name, err)
		}
		if all == nil {
			all = xattrs{}
		}
		all[name] = value
	}
	return all, copied, nil
}

// readXattr calls read with a buffer that is large enough. It returns nil if there is no such
// attribute, or the file system has none.
func readXattr(read func(buf []byte) (int, error)) ([]byte, error) {
	buf := make([]byte, 256)
	n, err := read(buf)
	if err == unix.ERANGE {
		buf = make([]byte, maxXattr)
		n, err = read(buf)
	}
	if err == unix.ENOTSUP || err == unix.ENODATA {
		return nil, nil
	}
	return buf[:max(n, 0)], err
}

// valueBeyondMode returns the part of an attribute's value that the mode does not show: of an
// access ACL the entries of named users and groups, and of the owning group; otherwise all.
func valueBeyondMode(name string, value []byte) string {
	if name != accessACL {
		return string(value)
	}
	return string(entriesOf(value, aclUser, aclGroupObj, aclGroup))
}

// Tags of ACL entries, see acl(5) and linux/posix_acl.h.
const (
	aclUser     = 0x02
	aclGroupObj = 0x04
	aclGroup    = 0x08
)

// entriesOf returns the entries of an ACL that have one of these tags. An ACL is a version of
// four bytes, and entries: a tag and permissions of two bytes each, and an ID of four.
func entriesOf(acl []byte, tags ...uint16) (out []byte) {
	const version, entry = 4, 8
	for acl = acl[min(version, len(acl)):]; len(acl) >= entry; acl = acl[entry:] {
		for _, tag := range tags {
			if binary.LittleEndian.Uint16(acl) == tag {
				out = append(out, acl[:entry]...)
			}
		}
	}
	return out
}

// restoreAttributes undoes the changes that a command has made to the extended attributes and
// ACLs of a file in the upper layer: no change would show them, so no commit keeps them. A
// file that replaces another one gets the attributes of the other file. dir is the node of its
// directory, fd that directory in the upper layer, and need the mode bits that grantAccess has
// added.
func (c *collector) restoreAttributes(dir *Node, fd int, rel string, e *upperEntry, need uint32) error {
	at := fmt.Sprintf("/proc/self/fd/%d/%s", fd, e.name)
	now, copied, err := xattrsOf(at)
	if err != nil {
		return err
	}
	var want xattrs
	if e.n != nil && e.n.mode.IsDir() == (e.st.Mode&unix.S_IFMT == unix.S_IFDIR) && e.n.mode.Type()&^fs.ModeDir == 0 {
		want, _, err = xattrsOf(c.tree.hostPath(e.n.Path()))
	} else if len(now) > 0 {
		want, err = c.inherited(dir, fd, now)
	}
	if err != nil || len(now)+len(want) == 0 {
		return err
	}
	mode, differs, set := e.st.Mode&0o777, false, false
	names := xattrs{}
	maps.Copy(names, now)
	maps.Copy(names, want)
	for name := range names {
		is, has := now[name]
		was, had := want[name]
		if has == had && valueBeyondMode(name, is) == valueBeyondMode(name, was) {
			continue
		}
		differs, set = true, set || has || copied
		if owning := entriesOf(is, aclGroupObj); name == accessACL && !had && len(owning) > 0 {
			// The group bits of the mode were the mask of the ACL.
			mode = mode&^0o070 | mode&0o070&(uint32(binary.LittleEndian.Uint16(owning[2:]))<<3)
		}
		err := withWriteBit(at, func() error {
			if had {
				return unix.Lsetxattr(at, name, was, 0)
			}
			return unix.Lremovexattr(at, name)
		})
		if err != nil {
			return err
		}
	}
	if !differs {
		return nil
	}
	if set {
		c.tree.set.droppedAttributes = append(c.tree.set.droppedAttributes, c.tree.hostPath(rel))
	}
	e.st.Mode = e.st.Mode&^0o777 | mode
	return unix.Fchmodat(fd, e.name, mode|need, 0)
}

// inherited returns the attributes among now that a new file has inherited from its directory,
// whose own attributes were restored before. dir and fd are as in restoreAttributes.
func (c *collector) inherited(dir *Node, fd int, now xattrs) (xattrs, error) {
	at := fmt.Sprintf("/proc/self/fd/%d/.", fd)
	if dir.origin != nil {
		at = c.tree.hostPath(dir.Path())
	}
	of, _, err := xattrsOf(at)
	inherits := of[defaultACL]
	if err != nil || inherits == nil {
		return nil, err
	}
	want := xattrs{}
	for _, name := range []string{accessACL, defaultACL} {
		if value, has := now[name]; has && valueBeyondMode(name, value) == valueBeyondMode(name, inherits) {
			want[name] = value
		}
	}
	return want, nil
}

// withWriteBit calls op. If the mode of the file forbids it, withWriteBit gives the owner
// write permission, calls op again, and restores the mode.
func withWriteBit(path string, op func() error) error {
	err := op()
	if err != unix.EACCES {
		return err
	}
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err
	}
	return errors.Join(unix.Chmod(path, st.Mode&0o777|0o200), op(), unix.Chmod(path, st.Mode&0o777))
}

// copyAttributes copies the tracked attributes of a file, as far as the host permits.
func copyAttributes(to *os.File, from string) {
	of, _, _ := xattrsOf(from)
	for name, value := range of {
		_ = unix.Fsetxattr(int(to.Fd()), name, value, 0)
	}
}

// hasXattr reports whether an attribute of the overlay is "y", which means true.
func hasXattr(fd int, name string) bool {
	var value [2]byte
	n, err := unix.Fgetxattr(fd, name, value[:])
	return err == nil && n == 1 && value[0] == 'y'
}

// Names of the extended attributes of an overlay.
const (
	overlayXattr = "user.overlay."       // prefix of the overlay's own attributes
	originXattr  = "user.overlay.origin" // set on files that were copied from the host
)

// stripXattrs removes the overlay's own attributes.
func stripXattrs(path string) error {
	list, err := readXattr(func(buf []byte) (int, error) { return unix.Llistxattr(path, buf) })
	for name := range strings.SplitSeq(string(list), "\x00") {
		if err == nil && strings.HasPrefix(name, overlayXattr) {
			err = withWriteBit(path, func() error { return unix.Lremovexattr(path, name) })
		}
	}
	return err
}
