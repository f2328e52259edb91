/* The service itself: networks, endpoints, namespaces and containers, and what it refuses.

   The state is one JSON file. Each verb reads it, and writes it if it changed; a lock file beside it keeps other
   processes out meanwhile. Objects are kept as v2 shows them. */
#ifndef FAKE_HNS_SERVICE_H
#define FAKE_HNS_SERVICE_H

#include "caller.h"
#include "json.h"

#define NETWORKS "Networks"
#define ENDPOINTS "Endpoints"
#define NAMESPACES "Namespaces"
#define CONTAINERS "Containers"

#define NO_NETWORK ((HRESULT)0x803B0001)
#define NO_ENDPOINT ((HRESULT)0x803B0002)
#define NO_SUBNET ((HRESULT)0x803B0005)
#define BAD_NETWORK ((HRESULT)0x803B000A)
#define BAD_NETWORK_TYPE ((HRESULT)0x803B000B)
#define BAD_POLICY ((HRESULT)0x803B000D)
#define BAD_POLICY_TYPE ((HRESULT)0x803B000E)
#define NETWORK_EXISTS ((HRESULT)0x803B0010)
#define ALREADY_ATTACHED ((HRESULT)0x803B0014)
#define UNSUPPORTED ((HRESULT)0x803B0015)
#define BAD_JSON ((HRESULT)0x803B001B)
#define ADDRESS_TAKEN ((HRESULT)0x803B002F)
#define NOT_FOUND ((HRESULT)0x80070490)
#define NO_SYSTEM ((HRESULT)0xC037010E)

value *open_state(void); /* takes the lock */
void close_state(value *state, bool changed);

/* What $TORTIE_FAKE_HNS_FAIL wants of this call: "HcnCreateEndpoint=0x80070005x2;HNSCall POST /networks/=0x80004005",
   the beginning of a call, its HRESULT, and how often (always, without a number). */
HRESULT injected(const char *call);

HRESULT not_found(const char *kind);
const char *explanation(HRESULT);

value *all_of(value *state, const char *kind);
value *found(value *state, const char *kind, const char *identity); /* NULL without one */
bool passes(const value *object, const value *filter);

HRESULT add_network(value *state, value *settings, const char *identity, value **made);
HRESULT add_endpoint(value *state, const char *network, value *settings, const char *identity, value **made);
HRESULT add_namespace(value *state, value *settings, const char *identity, value **made);
HRESULT change(value *state, const char *kind, value *object, const value *request);
HRESULT removed(value *state, const char *kind, const char *identity);

/* v1 and v2 show the same objects in different documents. */
value *network_v1(const value *network);
value *network_of_v1(const value *request);
value *endpoint_v1(const value *state, const value *endpoint);
value *endpoint_of_v1(const value *request);

#endif
