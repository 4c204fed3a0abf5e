// Reads a request of OTLP logs with the packages of the OpenTelemetry Collector, and prints its records as JSON.
package main

import (
	"encoding/json"
	"io"
	"os"

	"go.opentelemetry.io/collector/pdata/plog"
)

func main() {
	body, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	logs, err := (&plog.ProtoUnmarshaler{}).UnmarshalLogs(body)
	if err != nil {
		panic(err)
	}
	records := []any{}
	for _, resource := range logs.ResourceLogs().All() {
		for _, scope := range resource.ScopeLogs().All() {
			for _, record := range scope.LogRecords().All() {
				records = append(records, map[string]any{
					"resource":   resource.Resource().Attributes().AsRaw(),
					"scope":      scope.Scope().Name(),
					"time":       record.Timestamp().AsTime(),
					"event":      record.EventName(),
					"severity":   record.SeverityText(),
					"number":     record.SeverityNumber(),
					"body":       record.Body().AsString(),
					"attributes": record.Attributes().AsRaw(),
				})
			}
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(records); err != nil {
		panic(err)
	}
}
