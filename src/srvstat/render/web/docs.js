// Shows the OpenAPI document of the service with Swagger UI (docs.html).
"use strict";

(async () => {
  const place = document.getElementById("docs");
  const address = new URL("openapi.json", document.baseURI);
  const response = await fetch(address);
  const spec = await response.json();
  // Requests go to the service that served this page, also through a proxy with a prefix.
  spec.servers = [{ url: new URL(".", address).href.replace(/\/$/, ""), description: "This service" }];
  // The link takes the place of the one that Swagger UI shows for a document with an address.
  spec.externalDocs = { description: "openapi.json", url: address.href };
  SwaggerUIBundle({
    spec,
    domNode: place,
    deepLinking: true,
    displayRequestDuration: true,
    tryItOutEnabled: true,
    validatorUrl: null,
  });
})();
