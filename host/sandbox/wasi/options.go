package wasi

import (
	"fmt"
	"io"
	"slices"

	"github.com/stockade-dev/stockade/host/policy"
	"github.com/stockade-dev/stockade/host/policy/paths"
	"github.com/stockade-dev/stockade/host/stage"
)

// Options is what an FS can have besides mounts. The zero value is what [New]
// gives with the default limits.
type Options struct {
	Limits Limits
	// Stage takes what the guest changes in its writable mounts, instead of the
	// host's files. It is for one FS, and may be committed when that is closed.
	// Nil: changes are made at once.
	Stage *stage.Set
	// Paths says which special paths the guest may read all the same.
	Paths paths.Opened
}

// NewWith is New with options; nil is the zero value.
func NewWith(mounts []policy.Mount, masked []string, opts *Options) (*FS, error) {
	if opts == nil {
		opts = &Options{}
	}
	limits, err := opts.Limits.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("mount: %w", err)
	}
	f := &FS{
		tree:    map[string][]string{"/": nil},
		limits:  limits,
		stage:   opts.Stage,
		paths:   opts.Paths,
		refused: &refusals{},
		open:    map[io.Closer]struct{}{},
	}
	if f.stage != nil && f.stage.Dir() != "" {
		masked = append(slices.Clip(masked), f.stage.Dir())
	}
	if err := f.mount(mounts, masked); err != nil {
		_ = f.Close()
		return nil, err
	}
	if f.stage != nil {
		if err := f.stageOn(f.stage); err != nil {
			_ = f.Close()
			return nil, err
		}
	}
	return f, nil
}
