/* powershell.exe, as far as the plugin asks it: the command goes to the journal, and the answer is what a host with one
   interface, of the management address, would give. TORTIE_FAKE_POWERSHELL_FAIL is a text that makes a command fail. */
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

int wmain(int argc, wchar_t **argv) {
    const wchar_t *command = argc > 1 ? argv[argc - 1] : L"", *failing = _wgetenv(L"TORTIE_FAKE_POWERSHELL_FAIL");
    const wchar_t *state = _wgetenv(L"TORTIE_FAKE_HNS");
    wchar_t path[1024];
    swprintf(path, 1024, L"%ls.journal", state != NULL ? state : L"fake_hns.json");
    FILE *journal = _wfopen(path, L"ab");
    if (journal != NULL) fprintf(journal, "PowerShell %ls\n", command);
    if (journal != NULL) fclose(journal);
    if (failing != NULL && *failing != 0 && wcsstr(command, failing) != NULL) {
        fputs("No matching interface was found.\n", stderr);
        return 1;
    }
    if (wcsstr(command, L"PrefixLength") != NULL) puts("24");
    if (wcsstr(command, L"MacAddress") != NULL) puts("00-15-5D-01-02-03");
    if (wcsstr(command, L"Get-ComputerInfo") != NULL)
        puts("\r\nWindowsVersion OsBuildNumber OsHardwareAbstractionLayer\r\n-------------- ------------- --------------------------\r\n"
             "2009           20348         10.0.20348.1\r\n");
    return 0;
}
