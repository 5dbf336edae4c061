// Compare game servers and print a table.
//
// Usage: GATEWAY_KEY=… go run . URL RANGE SERVER SERVER…
// A server is an id such as harbor-city, or cfxId:ns6r0b.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"compare_servers/client"
)

const (
	attempts = 3
	timeout  = 15 * time.Second
)

func main() {
	if len(os.Args) < 4 {
		fail("usage: compare_servers URL RANGE SERVER SERVER...")
	}
	api, ctx := connect(os.Args[1], os.Getenv("GATEWAY_KEY"))
	request := client.CompareRequest{}
	request.SetRange(client.Range(os.Args[2]))
	rows := [][]string{{"server", "now", "average", "median", "peak", "growth %", "name"}}
	for _, server := range os.Args[3:] {
		reference := buildReference(server)
		request.Servers = append(request.Servers, reference)
		get := api.ServersAPI.GetServer(ctx, reference.Identifier).By(reference.By)
		rows = append(rows, []string{ask(get.Execute).Data.Hostname})
	}
	comparison := ask(api.ComparisonAPI.CompareServers(ctx).CompareRequest(request).Execute)
	for i, result := range comparison.Data { // in the order of the request
		rows[i+1] = buildRow(result, rows[i+1][0])
	}
	printTable(rows)
}

func connect(url string, key string) (*client.APIClient, context.Context) {
	if key == "" {
		key = "any"
	}
	configuration := client.NewConfiguration()
	configuration.Servers = client.ServerConfigurations{{URL: url}}
	configuration.HTTPClient = &http.Client{Timeout: timeout}
	keys := map[string]client.APIKey{"GatewayKey": {Key: key}}
	ctx := context.WithValue(context.Background(), client.ContextAPIKeys, keys)
	return client.NewAPIClient(configuration), ctx
}

// Ask repeats a request after 429, 500 or no answer, at most twice: both operations only read.
func ask[Answer any](execute func() (Answer, *http.Response, error)) Answer {
	for attempt := 1; ; attempt++ {
		answer, response, err := execute()
		if err == nil {
			return answer
		}
		isRepeated := response == nil || response.StatusCode == 429 || response.StatusCode == 500
		// The connection broke within the body.
		isRepeated = isRepeated || response.StatusCode == 200
		if attempt == attempts || !isRepeated {
			fail("error: " + describe(response, err))
		}
		seconds := attempt
		if response != nil {
			if given, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
				seconds = given
			}
		}
		time.Sleep(time.Duration(seconds) * time.Second)
	}
}

func describe(response *http.Response, err error) string {
	var failure *client.GenericOpenAPIError
	if errors.As(err, &failure) {
		if body, ok := failure.Model().(client.ErrorResponse); ok {
			return fmt.Sprintf("%d %s: %s", response.StatusCode, body.Error.Code, body.Error.Message)
		}
	}
	return err.Error()
}

func buildReference(server string) client.ServerReference {
	if strings.HasPrefix(server, "cfxId:") {
		return *client.NewServerReference(strings.TrimPrefix(server, "cfxId:"), client.CFX_ID)
	}
	return *client.NewServerReference(server, client.ID)
}

func buildRow(result client.ServerResult, hostname string) []string {
	return []string{
		result.ServerId,
		strconv.FormatInt(result.CurrentPlayers, 10),
		format("%.1f", result.AveragePlayers),
		format("%.1f", result.MedianPlayers),
		format("%.0f", result.PeakPlayers),
		format("%+.1f", result.Growth.Percentage),
		clean(hostname),
	}
}

// Format formats a figure; without observations it is unknown, not 0.
func format(form string, figure client.NullableFloat64) string {
	if figure.Get() == nil {
		return "-"
	}
	return fmt.Sprintf(form, *figure.Get())
}

// Clean makes the text of a stranger safe to print: it must not control the terminal.
func clean(text string) string {
	return strings.Map(func(one rune) rune {
		if unicode.IsPrint(one) {
			return one
		}
		return '?'
	}, text)
}

// PrintTable prints rows in columns; all but the first and the last one are numbers.
func printTable(rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			if length := utf8.RuneCountInString(cell); length > widths[i] {
				widths[i] = length
			}
		}
	}
	for _, row := range rows {
		last := len(row) - 1
		line := fmt.Sprintf("%-*s", widths[0], row[0])
		for i, cell := range row[1:last] {
			line += fmt.Sprintf("  %*s", widths[i+1], cell)
		}
		fmt.Println(line + "  " + row[last])
	}
}

func fail(message string) {
	fmt.Fprintln(os.Stderr, message)
	os.Exit(1)
}
