package stage

import (
	"encoding/binary"
	"maps"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/tool"
)

// acl returns an ACL that grants permissions to a user beside the owner.
func acl(user uint32, rights uint16) []byte {
	out := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range []struct {
		tag, perm uint16
		id        uint32
	}{{1, 6, 1<<32 - 1}, {aclUser, rights, user}, {aclGroupObj, 4, 1<<32 - 1}, {0x10, rights | 4, 1<<32 - 1}, {0x20, 4, 1<<32 - 1}} {
		out = binary.LittleEndian.AppendUint16(out, e.tag)
		out = binary.LittleEndian.AppendUint16(out, e.perm)
		out = binary.LittleEndian.AppendUint32(out, e.id)
	}
	return out
}

// A commit changes no extended attributes and no ACLs: the set lists the files whose
// attributes a command has set, and the files keep the attributes that they had.
func TestACommitChangesNoAttributes(t *testing.T) {
	for _, far := range []bool{false, true} {
		w := newFull(t)
		set := func(name, attribute string, value []byte) {
			t.Helper()
			if err := unix.Lsetxattr(name, attribute, value, 0); err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range []string{"ws/has", "ws/replaced", "ws/plain", "ws/loses", "ws/narrowed", "ws/team/old"} {
			w.File(name, "before")
		}
		for _, name := range []string{"ws/has", "ws/replaced", "ws/loses"} {
			set(w.Path(name), "user.mine", []byte("kept"))
			set(w.Path(name), accessACL, acl(7, 4))
		}
		set(w.Path("ws/narrowed"), accessACL, acl(7, 6))
		set(w.Path("ws/team"), defaultACL, acl(7, 6))
		o := newOverlay(w)
		o.canRename = o.canRename && !far
		o.write("has", "after")
		set(o.at("has"), originXattr, nil)
		set(o.at("has"), "user.mine", []byte("forged"))
		set(o.at("has"), "user.new", []byte("x"))
		set(o.at("has"), accessACL, acl(65534, 7))
		o.write("replaced", "after") // another file took its name
		o.write("loses", "before")
		set(o.at("loses"), originXattr, nil)
		o.write("plain", "before")
		set(o.at("plain"), accessACL, acl(65534, 7))
		o.write("narrowed", "before")
		set(o.at("narrowed"), accessACL, acl(7, 6))
		o.must(os.Chmod(o.at("narrowed"), 0o600))
		o.write("made", "after")
		set(o.at("made"), accessACL, acl(65534, 7))
		o.must(os.Chmod(o.at("made"), 0o200))
		o.write("dir/x", "after")
		set(o.at("dir"), defaultACL, acl(65534, 7))
		set(o.at("dir/x"), "user.new", []byte("x"))
		o.must(os.Mkdir(o.at("team"), 0o755))
		set(o.at("team"), defaultACL, acl(7, 6))
		o.write("team/new", "after") // gets those that its directory gives
		o.must(os.Mkdir(o.at("team/sub"), 0o755))
		o.write("team/sub/other", "after")
		set(o.at("team/sub/other"), accessACL, acl(65534, 7))

		s, err := o.collect()
		o.must(err)
		changes, err := s.Changes(t.Context())
		o.must(err)
		if c := changes[slices.IndexFunc(changes, func(c tool.Change) bool { return c.Path == w.Path("ws/made") })]; c.After.Mode.Perm() != 0o200 {
			t.Errorf("far %t: the mode of a new file is shown as %v", far, c.After.Mode)
		}
		told := s.DroppedAttributes()
		o.must(s.Commit(t.Context()))
		other := xattrs(nil)
		if far { // it is made anew, and gets those that its directory gives
			other = xattrs{accessACL: acl(7, 6)}
		}
		for name, want := range map[string]xattrs{
			"has": {"user.mine": []byte("kept"), accessACL: acl(7, 4)}, "replaced": {"user.mine": []byte("kept"), accessACL: acl(7, 4)},
			"loses": {"user.mine": []byte("kept"), accessACL: acl(7, 4)}, "plain": nil, "narrowed": {accessACL: acl(7, 6)}, "made": nil, "dir": nil, "dir/x": nil,
			"team": {defaultACL: acl(7, 6)}, "team/new": {accessACL: acl(7, 6)}, "team/sub": {accessACL: acl(7, 6), defaultACL: acl(7, 6)}, "team/sub/other": other,
		} {
			got, _, err := xattrsOf(w.Path("ws/" + name))
			if err != nil || !maps.EqualFunc(got, want, func(a, b []byte) bool {
				return valueBeyondMode(accessACL, a) == valueBeyondMode(accessACL, b) && (entriesOf(a, aclUser) != nil || string(a) == string(b))
			}) {
				t.Errorf("far %t: %s has %q, %v", far, name, got, err)
			}
		}
		slices.Sort(told)
		want := []string{"dir", "dir/x", "has", "loses", "made", "plain", "team/sub/other"}
		for i := range want {
			want[i] = w.Path("ws/" + want[i])
		}
		if !slices.Equal(told, want) {
			t.Errorf("far %t: told of %q", far, told)
		}
	}
}
