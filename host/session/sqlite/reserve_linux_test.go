//go:build cgo

package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/session"
)

func init() { children["reserve"] = childReserve }

// TestAFullDiskKeepsNoEventFromBeingRecorded fills a small file system, in the mount
// namespace of a child.
func TestAFullDiskKeepsNoEventFromBeingRecorded(t *testing.T) {
	c := child(t, "reserve", t.TempDir())
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}, GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	if out, err := c.Output(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func childReserve(dir string) error {
	if err := unix.Mount("none", dir, "tmpfs", 0, "size=160m"); err != nil {
		return err
	}
	const reserve = 32 << 20
	ctx := context.Background()
	name := filepath.Join(dir, "sessions.db")
	kept := func() int64 {
		info, err := os.Stat(name + reserveSuffix)
		if err != nil {
			return -1
		}
		return info.Size()
	}
	written := uint64(0)
	var told atomic.Int64
	open := func() (*Store, error) {
		s, err := Open(ctx, name)
		if err == nil {
			s.KeepReserve(reserve, func(int64) { told.Add(1) })
		}
		return s, err
	}
	draft := session.Draft{Session: "a", Type: session.TypeMessage, Body: json.RawMessage(`"` + strings.Repeat("x", 2000) + `"`)}
	put := func(s *Store, n int) error {
		for range n {
			if _, err := s.Append(ctx, draft); err != nil {
				return fmt.Errorf("after %d events, with %d bytes of the reserve: %w", written, kept(), err)
			}
			written++
		}
		return nil
	}
	first, err := open()
	if err == nil {
		err = put(first, 1)
	}
	if err != nil {
		return err
	}
	if err := first.Close(); err != nil || kept() != reserve {
		return fmt.Errorf("the reserve has %d bytes, %w", kept(), err)
	}

	// A command fills the disk continuously while two processes write.
	filler, err := os.Create(filepath.Join(dir, "filler"))
	if err != nil {
		return err
	}
	fill := func() error {
		_, err := io.Copy(filler, zeros{})
		return err
	}
	if err := fill(); !errors.Is(err, unix.ENOSPC) {
		return fmt.Errorf("the disk is not full: %w", err)
	}
	stop, filling := make(chan struct{}), sync.WaitGroup{}
	filling.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = fill()
			}
		}
	})
	if first, err = open(); err != nil {
		return fmt.Errorf("open while the disk is full, with %d bytes of the reserve: %w", kept(), err)
	}
	second, err := open()
	if err != nil {
		return err
	}
	for range 30 {
		if err := errors.Join(put(first, 1), put(second, 1)); err != nil {
			return err
		}
	}
	close(stop)
	filling.Wait()
	if told.Load() == 0 || kept() >= reserve {
		return fmt.Errorf("the reserve has %d bytes, and its use was told %d times: the disk was not full", kept(), told.Load())
	}
	report, err := session.VerifyStore(first.All(ctx))
	if err != nil || report.Events != written {
		return fmt.Errorf("there are %d events, want %d: %w", report.Events, written, err)
	}

	// There is free space again.
	if err := os.Remove(filler.Name()); err != nil {
		return err
	}
	if err := errors.Join(filler.Close(), first.Close(), second.Close()); err != nil {
		return err
	}
	if first, err = open(); err != nil {
		return err
	}
	if err := errors.Join(put(first, 1), first.Close()); err != nil || kept() != reserve {
		return fmt.Errorf("with room again the reserve has %d bytes: %w", kept(), err)
	}
	return nil
}

// zeros is an endless reader that fills a disk.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
