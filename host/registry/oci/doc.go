// Package oci is about modules in OCI registries and layouts.
package oci
