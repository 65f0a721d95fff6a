package selftest

import (
	"path/filepath"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// addedAttacks are attacks of a tool that a person has added and that asks for more than
// it was given. Everything it asks for exists and is granted to other tools.
func addedAttacks() []Attack {
	return []Attack{
		{Name: "added-given-nothing", Description: "Read and change the workspace as a tool that was added and given nothing.",
			run: addedFilesAttack("files: it was given none", func(t *trial, s *script) {
				s.steal(s.place(t.guestPath("ws/inside")), "open ws/inside")
				s.steal(s.place(t.guestPath("ws/d/deep")), "open ws/d/deep")
				s.overwrite(s.place(t.guestPath("ws/made")), oCreate, "create ws/made")
			})},
		{Name: "added-reads-only", Description: "Change a directory that a tool which was added was given to read.",
			run: addedFilesAttack("files: it was given them to read", func(t *trial, s *script) {
				s.overwrite(s.place(t.guestPath("ws/made")), oCreate, "create ws/made")
				s.overwrite(s.place(t.guestPath("ws/inside")), 0, "open ws/inside for writing")
				s.mkdir(s.place(t.guestPath("ws/made"))).mustBeRefused("mkdir ws/made")
			}, "ws")},
		{Name: "added-reads-beside", Description: "Read what lies beside the one directory that a tool which was added was given.",
			run: addedFilesAttack("files: it was given another directory", func(t *trial, s *script) {
				for _, n := range []string{"ws/inside", "ws/d/../inside"} {
					s.steal(s.place(t.guestPath(n)), "open "+n)
				}
			}, "ws/d")},
		{Name: "added-command", kinds: native, Description: "Run a command as a tool that was added, asks for commands and was not given any.", run: func(t *trial) (string, error) {
			s := &script{}
			g := t.commandGuest(t.touchCommand()[2])
			g.Allowance = &tool.Allowance{}
			return "exec: it was given no commands", t.runDenied(g, s, s.exec("", "bash", "-c", t.touchCommand()[2]))
		}},
		{Name: "added-store", kinds: native, Description: "Keep something as a tool that was added, asks for a store and was not given one.", run: addedStore},
	}
}

// addedFilesAttack is an attack of an added tool that asks for files and was given dirs
// to read. Other tools may change the whole workspace. by is the mechanism that must stop
// the attack.
func addedFilesAttack(by string, try func(*trial, *script), dirs ...string) func(*trial) (string, error) {
	return func(t *trial) (string, error) {
		s := newHarmlessScript()
		try(t, s)
		g := Guest{Files: tool.FilesWrite, Mounts: []policy.Mount{{Host: t.hostPath("ws"), Write: true}}, Allowance: &tool.Allowance{}}
		for _, dir := range dirs {
			real, err := filepath.EvalSymlinks(t.hostPath(dir))
			if err != nil {
				return "", err
			}
			g.Allowance.Read = append(g.Allowance.Read, real)
		}
		return t.runRefused(g, s, by)
	}
}
