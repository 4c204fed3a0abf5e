// Package api names the modules that a generated client needs, so that CI compiles them before the tests.
package api

import (
	_ "github.com/oapi-codegen/runtime"
	_ "github.com/oapi-codegen/runtime/types"
)
