// Package author makes new tools: the project of one, its build, its tests, and the
// manifest in its module.
package author
