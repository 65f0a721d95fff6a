package guests

import "embed"

//go:embed all:native/linux_arm64
var native embed.FS
