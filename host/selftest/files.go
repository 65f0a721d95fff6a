package selftest

import (
	"fmt"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// grants of file attacks: how ws is mounted.
type grants int

const (
	grantWrite  grants = iota // to a tool that writes
	grantRead                 // read-only, to a tool that writes
	grantReader               // with write, to a tool that reads
	grantNone                 // not at all
)

// fileAttack is a script against files, which is to be refused everywhere.
type fileAttack struct {
	name, tries string
	by          string // what refuses it
	grant       grants
	mask        []string // what is masked
	also        []string // what else of the host is mounted, read-only
	plant       func(*trial) error
	try         func(*trial, *script)
	changes     bool // it may change things in ws
	same        bool // all refusals have to be the same
}

func (a fileAttack) run(t *trial) (string, error) {
	if a.plant != nil {
		if err := a.plant(t); err != nil {
			return "", notTried("%v", err)
		}
	}
	var allowed []string
	if a.changes {
		allowed = []string{"ws"}
	}
	if err := t.look(allowed...); err != nil {
		return "", notTried("%v", err)
	}
	g := t.mounted(a.grant != grantRead)
	switch a.grant {
	case grantRead:
		g.Files = tool.FilesWrite
	case grantReader:
		g.Files = tool.FilesRead
	case grantNone:
		g = Guest{}
	}
	for _, m := range a.mask {
		g.Masked = append(g.Masked, t.host(m))
	}
	for _, dir := range a.also {
		g.Mounts = append(g.Mounts, policy.Mount{Host: dir})
	}
	s := &script{}
	content := s.control(t, a.grant)
	a.try(t, s)
	r, err := t.report(g, s)
	if err != nil {
		return "", err
	}
	refusals, err := r.check(s)
	switch {
	case err != nil:
		return "", err
	case len(refusals) == 0:
		return "", notTried("the script holds no attack")
	case a.same && len(refusals) > 1:
		return "", fmt.Errorf("the answers differ: %s", errnos(refusals))
	case a.grant != grantNone && string(r.span(content)) != inside:
		return "", notTried("the guest reads %q from its own file", r.span(content))
	}
	return fmt.Sprintf("files: %s (%s)", a.by, errnos(refusals)), nil
}

// control shows that the guest can use files, so that a refusal means
// something.
func (s *script) control(t *trial, g grants) span {
	if g == grantNone {
		s.add("clock_time_get", 0, 1, s.room(8).at).must("the guest calls WASI")
		return span{}
	}
	f := s.open(s.at(t.guest("ws/inside")), 0, mayRead, 0)
	f.must("the guest opens its own file")
	read, content := s.read(f.fd, len(inside))
	read.must("the guest reads its own file")
	s.add("fd_close", f.fd)
	return content
}
