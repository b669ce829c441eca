/* An example of a program that uses the installed C library: the law of white noise. */
#include <spiked.h>
#include <stdio.h>

int main(void) {
    spiked_law *law = NULL;
    spiked_bulk bulk;
    if (spiked_law_create(NULL, NULL, 1.0, &law) != SPIKED_OK || spiked_law_bulk(law, &bulk) != SPIKED_OK) {
        printf("%s\n", spiked_last_error());
        return 1;
    }
    printf("spiked %s: edge %.3f, threshold %.3f\n", spiked_version(), bulk.bulk_edge, bulk.detection_threshold);
    spiked_law_free(law);
    return bulk.bulk_edge > 3.99 && bulk.bulk_edge < 4.01 ? 0 : 1;
}
