//go:build !linux

package door

import "errors"

const memoryStages = ""

func makePrivateDir(string) error { return errors.ErrUnsupported }
