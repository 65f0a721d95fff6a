package guests

import "embed"

//go:embed all:native/linux_amd64
var native embed.FS
