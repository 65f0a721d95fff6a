package selftest

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// flood runs a script whose attack is to repeat a call until it is refused, and
// fails if it was made more than most times.
func (t *trial) flood(g Guest, s *script, c *call, most int) (times int, e errno, err error) {
	r, err := t.report(g, s)
	if err != nil {
		return 0, 0, err
	}
	if _, err := r.check(s); err != nil {
		return 0, 0, err
	}
	times, e = r.times(c), r.errno(c)
	t.detail = fmt.Sprintf("refused the %d. time", times)
	if times > most {
		return 0, 0, fmt.Errorf("it worked %d times", times-1)
	}
	return times, e, nil
}

func descriptorFlood(t *trial) (string, error) {
	const tries, most = 2000, 600
	s := &script{}
	s.control(t, grantWrite)
	f := s.open(s.at(t.guest("ws/inside")), 0, mayRead, 0)
	s.again(f.refused("open one more file"), tries)
	times, e, err := t.flood(t.mounted(true), s, f.call, most)
	return fmt.Sprintf("files: %d open files (%s)", times-1, e), err
}

// diskQuota lets files grow without writing: where they are sparse, nothing is
// used even if nobody stops it.
func diskQuota(t *trial) (string, error) {
	if err := t.look("ws"); err != nil {
		return "", notTried("%v", err)
	}
	const each = 600 << 20
	s := &script{}
	content := s.control(t, grantWrite)
	for i, name := range []string{"ws/a", "ws/b"} {
		f := s.open(s.at(t.guest(name)), oCreate, mayRead|mayWrite, 0)
		f.must("create " + name)
		grow := s.add("fd_filestat_set_size", f.fd, each)
		if i == 0 {
			grow.must("let one file grow to 600 MiB")
		} else {
			grow.refused("let two files grow to 600 MiB")
		}
	}
	r, err := t.report(t.mounted(true), s)
	if err != nil {
		return "", err
	}
	refusals, err := r.check(s)
	var sum int64
	for _, name := range []string{"ws/a", "ws/b"} {
		if fi, statErr := os.Stat(t.host(name)); statErr == nil {
			sum += fi.Size()
		}
	}
	switch {
	case err != nil:
	case sum > 1<<30:
		err = fmt.Errorf("the files have %d MiB", sum>>20)
	case sum < each:
		err = notTried("the first file did not grow on the host")
	case string(r.span(content)) != inside:
		err = notTried("the guest reads %q from its own file", r.span(content))
	}
	t.detail = fmt.Sprintf("the files have %d MiB", sum>>20)
	return fmt.Sprintf("files: the bytes of a call (%s)", errnos(refusals)), err
}

func hugeFile(t *trial) (string, error) {
	if err := t.look("ws"); err != nil {
		return "", notTried("%v", err)
	}
	const size = int64(1) << 40
	s := &script{}
	s.control(t, grantWrite)
	f := s.open(s.at(t.guest("ws/huge")), oCreate, mayRead|mayWrite, 0)
	f.must("create ws/huge")
	s.add("fd_filestat_set_size", f.fd, size).refused("set the size to 1 TiB")
	x := s.text("x")
	list := s.words(x.at, x.n)
	s.add("fd_pwrite", f.fd, list.at, 1, size, s.words(0).at).refused("write at 1 TiB")
	s.add("fd_pwrite", f.fd, list.at, 1, int64(1)<<62, s.words(0).at).refused("write at 4 EiB")
	r, err := t.report(t.mounted(true), s)
	if err != nil {
		return "", err
	}
	refusals, err := r.check(s)
	if fi, statErr := os.Stat(t.host("ws/huge")); err == nil && (statErr != nil || fi.Size() > 0) {
		err = errors.Join(errors.New("the file has grown"), statErr)
	}
	return fmt.Sprintf("files: the size of a file (%s)", errnos(refusals)), err
}

func deepDirectories(t *trial) (string, error) {
	if err := t.look("ws"); err != nil {
		return "", notTried("%v", err)
	}
	const tries, most = 100, 45
	step := "/" + strings.Repeat("x", 100)
	s := &script{}
	s.control(t, grantWrite)
	base := t.guest("ws")
	name := s.text(base + strings.Repeat(step, tries))
	length := s.words(uint32(len(base)))
	longer := s.add("add", length.at, len(step))
	mkdir := s.add("path_create_directory", root, name.at, cell(length.at)).refused("nest one more directory")
	s.again(longer, tries)
	times, e, err := t.flood(t.mounted(true), s, mkdir, most)
	return fmt.Sprintf("files: %d nested directories (%s)", times-1, e), err
}
