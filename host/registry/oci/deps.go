package oci

import (
	_ "github.com/opencontainers/image-spec/specs-go/v1"
	_ "oras.land/oras-go/v2"
	_ "oras.land/oras-go/v2/content/oci"
	_ "oras.land/oras-go/v2/registry/remote"
)
