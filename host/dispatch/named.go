package dispatch

import (
	"os"
	"path/filepath"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// NamedFiles finds the regular files that the arguments of a call name, by way
// of links too, for a policy to decide by. It opens none. That a name leads
// elsewhere by the time when the call runs opens nothing: what the grant says is
// compared with what is found then.
func NamedFiles(p *policy.Policy, call tool.Call, entry *tool.Entry) []tool.NamedFile {
	if entry.Capabilities.Files == tool.FilesNone {
		return nil
	}
	var out []tool.NamedFile
	for _, f := range policy.PathArgs(call, entry) {
		if !p.Sees(f.Path) {
			continue
		}
		real, err := filepath.EvalSymlinks(f.Path)
		if err != nil {
			continue
		}
		if st, err := os.Lstat(real); err == nil && st.Mode().IsRegular() {
			out = append(out, tool.NamedFile{Arg: f.Arg, Path: real})
		}
	}
	return out
}
