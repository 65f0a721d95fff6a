package selftest

import (
	"path/filepath"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// addedAttacks are those of a tool that a person has added, which asks for more than
// it was given: all that other tools are shown is there, and was given to others.
func addedAttacks() []Attack {
	return []Attack{
		{Name: "added-given-nothing", Tries: "Read and change the workspace as a tool that was added and given nothing.",
			run: whereGiven("files: it was given none", func(t *trial, s *script) {
				s.steal(s.at(t.guest("ws/inside")), "open ws/inside")
				s.steal(s.at(t.guest("ws/d/deep")), "open ws/d/deep")
				s.overwrite(s.at(t.guest("ws/made")), oCreate, "create ws/made")
			})},
		{Name: "added-reads-only", Tries: "Change a directory that a tool which was added was given to read.",
			run: whereGiven("files: it was given them to read", func(t *trial, s *script) {
				s.overwrite(s.at(t.guest("ws/made")), oCreate, "create ws/made")
				s.overwrite(s.at(t.guest("ws/inside")), 0, "open ws/inside for writing")
				s.mkdir(s.at(t.guest("ws/made"))).refused("mkdir ws/made")
			}, "ws")},
		{Name: "added-reads-beside", Tries: "Read what lies beside the one directory that a tool which was added was given.",
			run: whereGiven("files: it was given another directory", func(t *trial, s *script) {
				for _, n := range []string{"ws/inside", "ws/d/../inside"} {
					s.steal(s.at(t.guest(n)), "open "+n)
				}
			}, "ws/d")},
		{Name: "added-command", kinds: native, Tries: "Run a command as a tool that was added, asks for commands and was not given any.", run: func(t *trial) (string, error) {
			s := &script{}
			g := t.approving(t.touch()[2])
			g.Added = &tool.Allowance{}
			return "exec: it was given no commands", t.deniedAll(g, s, s.exec("", "bash", "-c", t.touch()[2]))
		}},
		{Name: "added-store", kinds: native, Tries: "Keep something as a tool that was added, asks for a store and was not given one.", run: addedStore},
	}
}

// whereGiven is an attack of a tool that asks for files and was given these
// directories to read, where others are shown the workspace and may change it.
func whereGiven(by string, try func(*trial, *script), dirs ...string) func(*trial) (string, error) {
	return func(t *trial) (string, error) {
		s := callsWASI()
		try(t, s)
		g := Guest{Files: tool.FilesWrite, Mounts: []policy.Mount{{Host: t.host("ws"), Write: true}}, Added: &tool.Allowance{}}
		for _, dir := range dirs {
			real, err := filepath.EvalSymlinks(t.host(dir))
			if err != nil {
				return "", err
			}
			g.Added.Read = append(g.Added.Read, real)
		}
		return t.refused(g, s, by)
	}
}
