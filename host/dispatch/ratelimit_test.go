package dispatch

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/tool"
)

// Calls of one step wait for each other, and calls beyond the limit of a minute are
// refused, for this tool alone.
func TestCallsBeginAtThePaceOfTheirTool(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, policy.Options{})
		c := catalog(t)
		reads, _ := c.Find("file_read")
		paced, other := *reads, *reads
		paced.Name, paced.PerMinute = "search", 3
		other.Name = "ls"
		var err error
		if w.options.Catalog, err = tool.NewCatalogOf([]*tool.Entry{&paced, &other}); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var mu sync.Mutex
		var began []string
		w.run = func(_ context.Context, _ policy.Grant, _ *tool.Module, c tool.Call, _ func(tool.Progress)) (tool.Result, error) {
			mu.Lock()
			defer mu.Unlock()
			began = append(began, fmt.Sprint(c.Tool, " ", time.Since(start)))
			return tool.Result{Output: tool.Text("x")}, nil
		}
		d := New(w.options)
		var wg sync.WaitGroup
		refused := 0
		call := func(name string, n int) {
			for range n {
				wg.Go(func() {
					r, err := d.Call(t.Context(), tool.Call{ID: "c", Tool: name, Args: []byte(`{"path":"a"}`), Caller: tool.CallerAgent, Cwd: "/work"})
					switch {
					case err != nil:
						t.Error(err)
					case r.Err != nil && r.Err.Code == tool.CodeRateLimited && r.Err.Hint != nil:
						mu.Lock()
						refused++
						mu.Unlock()
					case r.Err != nil:
						t.Error(r.Summary())
					}
				})
			}
			wg.Wait()
		}
		call("search", 5)
		call("ls", 2)
		time.Sleep(59 * time.Second) // in the bubble, where it takes none
		call("search", 1)
		slices.Sort(began)
		want := []string{"ls 2s", "ls 2s", "search 0s", "search 1m1s", "search 1s", "search 2s"}
		if !slices.Equal(began, want) || refused != 2 {
			t.Errorf("calls began at %q, want %q; %d were refused", began, want, refused)
		}

		ctx, cancel := context.WithCancel(t.Context())
		call("search", 1) // the next one would have to wait
		wg.Go(func() {
			r, err := d.Call(ctx, tool.Call{ID: "c", Tool: "search", Args: []byte(`{"path":"a"}`), Caller: tool.CallerAgent, Cwd: "/work"})
			if err != nil || r.Err == nil || r.Err.Code != tool.CodeCancelled {
				t.Errorf("a call that waits is %s, %v after it was cancelled", r.Summary(), err)
			}
		})
		synctest.Wait()
		cancel()
		wg.Wait()
	})
}
