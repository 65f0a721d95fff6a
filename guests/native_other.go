//go:build !linux || !(amd64 || arm64)

package guests

import "embed"

var native embed.FS // no native code is built for this platform
