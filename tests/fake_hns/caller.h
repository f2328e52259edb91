/* What passes between the fake and the code that calls it: texts in UTF-16, handles, memory that the caller frees.

   Whatever a caller does wrong with these is written to the journal as BAD; what it has not given back when its process
   ends, as LEAK. The journal is the state's file name with ".journal" behind it. */
#ifndef FAKE_HNS_CALLER_H
#define FAKE_HNS_CALLER_H

#include <stdbool.h>
#include <stdint.h>

#ifdef _WIN32
#include <windows.h>
#define EXPORTED __declspec(dllexport)
typedef WCHAR unit;
#else
#define EXPORTED __attribute__((visibility("default")))
#define WINAPI
typedef int32_t HRESULT;
typedef uint16_t unit; /* wchar_t has four octets here */
typedef const unit *PCWSTR;
typedef unit *PWSTR;
typedef struct {
    uint32_t Data1;
    uint16_t Data2, Data3;
    uint8_t Data4[8];
} GUID;
typedef const GUID *REFGUID;
#endif

#define DONE ((HRESULT)0)
#define BAD_POINTER ((HRESULT)0x80004003)  /* E_POINTER */
#define BAD_HANDLE ((HRESULT)0x80070006)   /* E_HANDLE */
#define BAD_ARGUMENT ((HRESULT)0x80070057) /* E_INVALIDARG */

void journal(const char *what, ...) __attribute__((format(printf, 1, 2)));
void bad(const char *function, const char *what); /* the caller's mistake */
const char *state_file(void);
const char *setting(const char *name); /* of the environment as it is now; "" without one */

const char *narrow(const char *function, PCWSTR text); /* NULL, and a BAD line, if it is no UTF-16 */
const char *guid_text(REFGUID);                        /* "" for a GUID of zeros */
const char *fresh_guid(void);

/* Gives the caller a text of ours; `into` may be NULL if the function allows that. */
void hand_out(const char *function, PWSTR *into, const char *text);

void *open_handle(char kind, const char *identity);
const char *of_handle(const char *function, char kind, const void *handle); /* the id; NULL, and BAD, for no such handle */
HRESULT close_handle(const char *function, char kind, const void *handle);

#endif
