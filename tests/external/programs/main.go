// Call the service through openapi-generator's client for Go.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"log"
	"os"

	client "example.org/srvstat/client"
)

func main() {
	configuration := client.NewConfiguration()
	configuration.Servers = client.ServerConfigurations{{URL: os.Args[1]}}
	api := client.NewAPIClient(configuration)
	keys := map[string]client.APIKey{"GatewayKey": {Key: os.Args[2]}}
	ctx := context.WithValue(context.Background(), client.ContextAPIKeys, keys)

	found, _, err := api.ServersAPI.GetServer(ctx, "x-busy").By(client.CFX_ID).Execute()
	if err != nil {
		log.Fatal(err)
	}
	request := client.NewCompareRequest([]client.ServerReference{
		*client.NewServerReference("busy", client.ID),
		*client.NewServerReference("x-silent", client.CFX_ID),
	})
	comparison, _, err := api.ComparisonAPI.CompareServers(ctx).CompareRequest(*request).Execute()
	if err != nil {
		log.Fatal(err)
	}
	for _, result := range comparison.Data {
		if result.Uptime.Get() != nil {
			log.Fatal("uptime is not null")
		}
	}
	_, response, err := api.ServersAPI.GetServer(ctx, "nobody").Execute()
	var failure *client.GenericOpenAPIError
	if !errors.As(err, &failure) {
		log.Fatal(err)
	}
	body := failure.Model().(client.ErrorResponse)
	detail := found.Data
	answers := map[string]any{
		"server":     []any{detail.Id, detail.Players.Current, detail.IconUrl.Get()},
		"comparison": comparison,
		"error":      []any{response.StatusCode, body.Error.Code, body.Error.Message},
	}
	if err := json.NewEncoder(os.Stdout).Encode(answers); err != nil {
		log.Fatal(err)
	}
}
