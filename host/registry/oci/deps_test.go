package oci

import _ "github.com/google/go-containerregistry/pkg/registry"
