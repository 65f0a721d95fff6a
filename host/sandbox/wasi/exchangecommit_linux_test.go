package wasi

import (
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/stage"
)

// A directory and a symbolic link that leads out change places all the time, while
// changes staged in the directory are committed.
func TestExchangeDuringCommit(t *testing.T) {
	w := newWorld(t)
	w.Dir("ws/x")
	w.Link("ws/y", "../out")
	before := w.Outside()
	stop := make(chan struct{})
	var exchanging sync.WaitGroup
	exchanging.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = unix.Renameat2(unix.AT_FDCWD, w.Path("ws/x"), unix.AT_FDCWD, w.Path("ws/y"), unix.RENAME_EXCHANGE)
			}
		}
	})
	done, refused := 0, 0
	for i := 0; i < 3000 && (i < 300 || done == 0 || refused == 0); i++ {
		s, err := stage.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		fs, err := New([]policy.Mount{w.rw("ws")}, nil, &Options{Stage: s})
		if err != nil {
			t.Fatal(err)
		}
		g := &guestFS{fs, w}
		if f, errno := g.file("ws/x/secret", WriteOnly|Create|Truncate); errno == 0 {
			f.Write([]byte("overwritten"))
			f.Close()
			g.Mkdir(g.name("ws/x/new"))
			g.Unlink(g.name("ws/x/new"))
			if s.Commit(t.Context()) == nil {
				done++
			} else {
				refused++
			}
		}
		fs.Close()
		if err := s.Drop(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	exchanging.Wait()
	t.Logf("%d commits, %d refused", done, refused)
	if diff := cmp.Diff(before, w.Outside()); diff != "" {
		t.Errorf("outside was changed:\n%s", diff)
	}
	for _, dir := range []string{"ws", "ws/x", "ws/y"} {
		entries, _ := os.ReadDir(w.Path(dir))
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), ".stockade-") {
				t.Errorf("%s/%s is left", dir, e.Name())
			}
		}
	}
}
