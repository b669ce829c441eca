/* The C interface of Spiked, library libspiked.so.0: spectral denoising, the laws of spiked models, and codes of
 * matrices, over plain arrays. Any language that can call C can use it; docs/C.md has examples.
 *
 * Conventions
 *
 * - Results equal those of the command `spiked` bit by bit: numbers are computed in double, with one BLAS thread.
 * - A function that can fail returns a status (enum spiked_status). After a status other than SPIKED_OK,
 *   spiked_last_error() gives the message, and what the function was to fill is unspecified where nothing else is said.
 * - Who allocates frees: callers own every array and text that they pass, and the library keeps no pointer to them
 *   after it returns. Only spiked_law and spiked_codec are allocated here; each has a function that frees it.
 * - Arrays are described in elements, not bytes. Lengths and strides are int64_t. Texts are UTF-8 and end with a zero.
 * - A pointer documented as optional may be NULL; a NULL anywhere else gives SPIKED_USAGE.
 * - Strengths, singular values and shrunk values are singular values (the unit of the data); bulk edges, outliers and
 *   the arguments of a law are eigenvalues of Z Z^T (the square of it). Overlaps are squared inner products. A number
 *   that a method does not have is NaN.
 *
 * Threads: every function may be called from several threads at once; one handle may be used by several threads as long
 * as none frees it. The library starts threads only inside spiked_roundtrip and, after spiked_use_threads, inside
 * spiked_denoise and its like; none is left when they return. It installs no signal handlers, prints nothing and
 * changes nothing when it is loaded. While calls run, OpenBLAS uses one thread in the whole process; when the last of
 * them returns, its number of threads is what it was before.
 *
 * Compatibility: functions and structs keep their meaning within libspiked.so.0; additions get new names. */
#ifndef SPIKED_H
#define SPIKED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SPIKED_API __attribute__((visibility("default")))
#else
#define SPIKED_API
#endif

/* Raised by every addition. That of the library is no less where it is the one a program was built for, or later. */
#define SPIKED_ABI_VERSION 7

/* The exit codes of the command, and SPIKED_TOO_SMALL. */
enum spiked_status {
    SPIKED_OK = 0,
    SPIKED_USAGE = 2,     /* an argument is wrong: an unknown name, a NULL, an impossible option */
    SPIKED_INPUT = 4,     /* the data cannot be used: NaN, infinities, no entries, bytes that are no code */
    SPIKED_OUTPUT = 6,    /* a file cannot be written; no function of this version does */
    SPIKED_MEMORY = 7,    /* out of memory; nothing is lost but this call */
    SPIKED_TOO_SMALL = 8, /* a buffer is too small; the length that is needed has been set */
    SPIKED_INTERNAL = 70, /* a defect of the library: please report the message */
    SPIKED_STOPPED = 75   /* the caller asked to stop, by spiked_stop_when or `poll` */
};

/* ---------------------------------------------------------------------------------------------------------- general */

SPIKED_API const char* spiked_version(void); /* such as "0.1.0"; never NULL, static */
SPIKED_API int spiked_abi_version(void);     /* SPIKED_ABI_VERSION of the library */
/* The message of the last failure in the calling thread, "problem (why): what to do", one line; "" before the first.
 * Never NULL. It belongs to the library and stays valid until the next failure in this thread or the end of the thread;
 * calls that succeed leave it as it is. */
SPIKED_API const char* spiked_last_error(void);

/* From now on, calls of the calling thread end early with SPIKED_STOPPED once *stop is not 0; NULL: never, as at
 * first. Another thread or a signal handler (int is its sig_atomic_t) may write to *stop at any time. The library
 * reads it while calls of this thread run, so set another pointer before the memory goes away. What a stopped call was
 * to fill is unspecified; the same call may be made again. Results do not depend on whether there is a pointer.
 * Decompositions look about every 0.1 s at 4000 x 4000, ranks by copies or parts of the data between these, intervals
 * by "bootstrap" between replicates, centring between rows or columns, spiked_roundtrip between blocks too, the
 * encoders of tcq and pq at every vector. What LAPACK or one product of matrices does goes on to its end: vectors of
 * more than a quarter of the singular values, and Gram matrices of data 1.5 times as long as wide or longer. Other
 * quantizers, decoders and laws do not look. */
SPIKED_API void spiked_stop_when(const volatile int* stop);

/* From now on, spiked_denoise, spiked_denoise_intervals, spiked_denoise_missing and spiked_leading_values in the
 * calling thread share the decomposition of a matrix of 700 x 700 or more between so many threads. 0: one for each
 * processor; 1, as at first: it is left to the calling thread. Results do not depend on it. */
SPIKED_API int spiked_use_threads(int64_t threads);

/* The names that the functions below accept, as a JSON array of objects {"name", "form", "summary", "source",
 * "aliases", "options": [..]}; "form" shows the name with a value that must follow it, "svd:R".
 * topic: "estimators", "transforms", "quantizers", "caches" (methods for whole sequences), "spectra" (the SPEC of laws
 * and covariances), "pca-losses".
 * Writes at most `capacity` bytes to `text`, the last of which is the ending zero, and sets *length to the length of
 * the whole text without it. SPIKED_TOO_SMALL when capacity <= *length; text may be NULL when capacity is 0. */
SPIKED_API int spiked_list(const char* topic, char* text, size_t capacity, size_t* length);

/* --------------------------------------------------------------------------------------------------------- matrices */

enum spiked_dtype { SPIKED_F32 = 1, SPIKED_F64 = 2 };

/* A matrix in the caller's memory: entry (i, j) is element i * row_stride + j * col_stride after `data`.
 * C order: row_stride = cols, col_stride = 1; Fortran order: row_stride = 1, col_stride = rows. Strides of an input may
 * be negative or 0 (data then points to entry (0, 0)); entries of an output must not overlap. Data need not be aligned.
 * At least one row and one column. An input is read once, into a copy in double; f32 outputs are rounded from double.
 * An output may lie in the memory of an input. */
typedef struct spiked_matrix {
    void* data;    /* inputs are never written */
    int64_t dtype; /* enum spiked_dtype */
    int64_t rows;
    int64_t cols;
    int64_t row_stride;
    int64_t col_stride;
} spiked_matrix;

/* -------------------------------------------------------------------------------------------------------- denoising */

/* What a spectral method finds. The caller sets the first group, each array of length `capacity`, optional; a call
 * fills the arrays and the second group. */
typedef struct spiked_estimate {
    int64_t capacity;        /* at least min(rows, cols) of the data, otherwise SPIKED_TOO_SMALL */
    double* singular_values; /* of the data, largest first: `values` of them */
    double* strengths;       /* the singular values of the clean signal: `rank` of them, as of the next three */
    double* overlap_left;    /* squared inner products of true and observed left vectors */
    double* overlap_right;
    double* shrunk;        /* what replaces the observed singular values in the signal */
    char* note;            /* why the result is empty or limited, or ""; optional, cut off to fit */
    int64_t note_capacity; /* in bytes, with the ending zero */

    int64_t values;                 /* min(rows, cols) without rows and columns of zeros */
    int64_t rank;                   /* number of components of the signal */
    int64_t stripped_rows;          /* rows of zeros, which are left out of the spectrum */
    int64_t stripped_cols;          /* and columns */
    double bulk_edge;               /* upper edge of the noise, an eigenvalue; NaN where the method has none */
    double expected_error;          /* its own estimate of ||S^ - S||_F^2; NaN where the method has none */
    double expected_relative_error; /* the same over ||S||_F^2 */
} spiked_estimate;

/* What is known about the covariance of one side of the noise A^(1/2) X B^(1/2), where entries of X have variance 1/d:
 * one of the two, or neither when both are NULL. */
typedef struct spiked_covariance {
    const char* spec;            /* "ar1:0.5", or a file .npy: as --row-spectrum of `spiked spectrum` */
    const spiked_matrix* matrix; /* the covariance, n x n (d x d), or the variances alone, n x 1 */
} spiked_covariance;

/* Denoises a matrix: the answers of `spiked spectrum --estimator METHOD`.
 * method: "eoptshrink", "gd-shrink:sigma=1", "screenot:20", "whiten+gd-shrink", ..
 * loss: "frobenius", "operator" or "nuclear"; NULL is "frobenius". It has no effect on methods that keep values.
 * row_noise, col_noise: optional; SPIKED_USAGE where the method does not use them (only tw-test and whiten+NAME do).
 * keep_empty: not 0 keeps rows and columns of zeros in the spectrum.
 * signal: optional; receives the estimated signal in the shape of the data.
 * estimate: optional.
 * Cost: a decomposition with values only when signal is NULL. */
SPIKED_API int spiked_denoise(const spiked_matrix* data, const char* method, const char* loss,
                              const spiked_covariance* row_noise, const spiked_covariance* col_noise, int keep_empty,
                              const spiked_matrix* signal, spiked_estimate* estimate);

/* The same from singular values alone, for a rows x cols matrix that has them: `count` = min(rows, cols) values in
 * descending order. SPIKED_USAGE for methods that need the matrix (transforms, tw-test:null=signflip). */
SPIKED_API int spiked_shrink(const double* singular_values, int64_t count, int64_t rows, int64_t cols,
                             const char* method, const char* loss, spiked_estimate* estimate);

/* Intervals of the components that a method finds. The caller sets the first group, whose arrays are optional; a call
 * fills the arrays and the second group. A number that does not exist is NaN, and `reasons` says why. */
typedef struct spiked_intervals {
    const char* method; /* "theory" (first order), "bootstrap" (signals drawn anew) or "none"; NULL is "theory" */
    double confidence;  /* in (0, 1); 0 is 0.95 */
    int64_t capacity;   /* at least min(rows, cols) of the data, otherwise SPIKED_TOO_SMALL */
    double* strength;   /* 2 * capacity numbers: low and high end of component 0, of component 1, .. */
    double* overlap_left;
    double* overlap_right;
    char* reasons;           /* why something is missing or one-sided, or "": that of component i begins at */
    int64_t reason_capacity; /* i * reason_capacity and is cut off to fit; in bytes, with the ending zero */

    int64_t count;     /* components with entries: the rank, but 0 for "none" */
    double next_value; /* p-value of one more component, Tracy-Widom; NaN where the method assumes no white noise */
} spiked_intervals;

/* spiked_denoise and spiked_shrink with intervals: as `spiked spectrum --intervals METHOD --confidence C`. Methods with
 * a transform, and those that keep values, have none. intervals is optional; from values alone for normal entries.
 * center, standardize: optional; as in spiked_prepare, for the data, whose centred dimensions then do not count as
 *   independent. The signal is that of the prepared matrix.
 * Cost beside spiked_denoise: 1 ms where there is a p-value, else less; by "bootstrap" 15 ms a component at 128 x 128.
 */
SPIKED_API int spiked_denoise_intervals(const spiked_matrix* data, const char* method, const char* loss,
                                        const spiked_covariance* row_noise, const spiked_covariance* col_noise,
                                        int keep_empty, const char* center, const char* standardize,
                                        const spiked_matrix* signal, spiked_estimate* estimate,
                                        spiked_intervals* intervals);
SPIKED_API int spiked_shrink_intervals(const double* singular_values, int64_t count, int64_t rows, int64_t cols,
                                       const char* method, const char* loss, spiked_estimate* estimate,
                                       spiked_intervals* intervals);

/* The largest singular values of a matrix. The caller sets the first group, of which all but `wanted` is optional; a
 * call fills the arrays and the second group. A singular value of the data lies within its bound of each value:
 * rounding is in the bound. It does not say that none was missed, which is improbable where the values come from an
 * iteration with a random start, and impossible where krylov_dimension is 0. */
typedef struct spiked_leading {
    int64_t wanted;             /* K, from 1 to min(rows, cols) of the data */
    double* singular_values;    /* largest first: `values` of them */
    double* bounds;             /* one for each, in its unit */
    const spiked_matrix* left;  /* receives the left vectors in columns, rows x wanted; those beyond `values` are 0 */
    const spiked_matrix* right; /* the right ones, cols x wanted */

    int64_t values;           /* wanted, or fewer where rows and columns of zeros are left out */
    int64_t krylov_dimension; /* of the space of the iteration; 0 where the whole matrix was decomposed */
} spiked_leading;

/* The K largest singular values and their vectors, without a decomposition of the whole of a large matrix: the answers
 * of `spiked spectrum --values K`.
 * keep_empty: as in spiked_denoise. Prepared data, or data with missing entries, come from spiked_prepare_missing.
 * Cost: that of a decomposition, or, where K is at most a 256th of the short side, and that is at least 1024, a part of
 *   it, a 18th for K = 4 at 4096 x 4096. Memory: two copies of the data, and one more where the whole is decomposed. */
SPIKED_API int spiked_leading_values(const spiked_matrix* data, int keep_empty, spiked_leading* found);

/* --------------------------------------------------------------------------------------------------- preparation */

/* Centres and standardizes a matrix, as --center and --standardize of `spiked spectrum`.
 * center: "rows", "columns", "both" or "none"; NULL is "none".
 * standardize: "rows" or "columns", which it also centres, and divides by their standard deviation (n - 1 in its
 *   denominator); NULL or "none" is neither. SPIKED_INPUT where one is constant.
 * prepared: the same shape; may be `data` itself.
 * notes: optional; rows and columns that centring made zero, or that are zero and were taken for data; one note a
 *   line. */
SPIKED_API int spiked_prepare(const spiked_matrix* data, const char* center, const char* standardize,
                              const spiked_matrix* prepared, char* notes, int64_t notes_capacity);

/* --------------------------------------------------------------------------------------------------- missing entries
 *
 * The functions below accept entries that are NaN as missing, seen at random, as --missing of the command: entries seen
 * are divided by the probability that they are seen, the others are 0.
 * missing: "uniform" (one probability), "rows", "columns" or "both" (one for each); NULL or "none": NaN is
 *   SPIKED_INPUT, as in the functions without `missing`.
 * share_seen: optional; the fraction of entries that are seen, in rows and columns of which some are. */

/* spiked_prepare. prepared, seen: optional; the weighted matrix, and the same without weights, NaN where missing. */
SPIKED_API int spiked_prepare_missing(const spiked_matrix* data, const char* missing, const char* center,
                                      const char* standardize, const spiked_matrix* prepared, const spiked_matrix* seen,
                                      double* share_seen, char* notes, int64_t notes_capacity);

/* spiked_denoise_intervals. The signal has all entries. Known covariances are those of the noise of the whole matrix;
 * SPIKED_USAGE where that of the entries seen is not separable: both sides correlated, or one and weights on the other.
 */
SPIKED_API int spiked_denoise_missing(const spiked_matrix* data, const char* missing, const char* method,
                                      const char* loss, const spiked_covariance* row_noise,
                                      const spiked_covariance* col_noise, int keep_empty, const char* center,
                                      const char* standardize, const spiked_matrix* signal, spiked_estimate* estimate,
                                      spiked_intervals* intervals, double* share_seen);

/* What `spiked spectrum` notes of a matrix and its spectrum beside the estimates: a first row or column that counts, a
 * covariance matrix in place of data, means that make up the largest singular value, a symmetric matrix; a gap in the
 * bulk; few entries seen.
 * data: the matrix that was denoised; NULL where it was prepared or has missing entries, then only the spectrum is
 * noted. singular_values: all `count` of them, as spiked_estimate has them. share_seen: as above; 1 where all are
 * known. notes: one a line, or ""; cut off to fit. Cost: a pass over the data. */
SPIKED_API int spiked_denoise_notes(const spiked_matrix* data, const double* singular_values, int64_t count,
                                    double share_seen, char* notes, int64_t notes_capacity);

/* ------------------------------------------------------------------------------------------ principal components */

/* Settings of spiked_pca; a struct of zeros has the defaults of `spiked pca`. */
typedef struct spiked_pca_options {
    const char* center;    /* "columns" or "none"; NULL is "columns" */
    int64_t standardize;   /* not 0: divide every column by its standard deviation; it is centred then */
    int64_t covariance_of; /* not 0: the data are a covariance or correlation matrix of so many samples, less one where
                              they were centred */
    const char* shrinker;  /* "optimal" for the loss, "debiased" or "sample"; NULL is "optimal" */
    const char* loss;      /* a name of spiked_list("pca-losses"), for "optimal" alone; NULL is the first of them */
    const char* noise;     /* noise level by "mean" or "median"; NULL is "mean" */
    double noise_level;    /* a known variance; 0: estimated */
    double level;          /* of the test of every component, in (0, 1); 0 is 0.01 */
} spiked_pca_options;

/* The caller sets the first group, each array of length `capacity`, optional; a call fills the arrays and the second
 * group. Eigenvalues and levels are variances, in the squared unit of the data. */
typedef struct spiked_components {
    int64_t capacity;        /* at least min(samples, features), otherwise SPIKED_TOO_SMALL */
    double* eigenvalues;     /* of the sample covariance, largest first: `values` of them */
    double* debiased;        /* estimated eigenvalues of the population: `components` of them, as of the next four */
    double* debiased_errors; /* their standard errors */
    double* cosines;         /* between eigenvectors of sample and population, not squared */
    double* cosine_errors;
    double* score_cumulants; /* kurtosis - 3 of the scores: `cumulants` of them */
    double* shrunk;          /* eigenvalues of the estimated covariance; noise_level in all other directions */
    char* notes;             /* one note a line, or ""; optional, cut off to fit */
    int64_t notes_capacity;  /* in bytes, with the ending zero */

    int64_t values; /* min(degrees_of_freedom, features without constant ones) */
    int64_t components;
    int64_t cumulants;          /* components, or 0 where the scores are taken as Gaussian */
    int64_t degrees_of_freedom; /* samples, less one where they were centred here */
    int64_t stripped_features;  /* constant ones, which are left out */
    double noise_level;         /* variance of the noise in every direction; NaN for data of exactly low rank */
    double bulk_edge;           /* the largest eigenvalue of noise alone; NaN likewise */
} spiked_components;

/* Noise level, number of components, debiased eigenvalues and cosines of a sample covariance under the spiked
 * covariance model: the answers of `spiked pca`. Rows are samples, columns features; at least 2 of each.
 * options: optional. */
SPIKED_API int spiked_pca(const spiked_matrix* data, const spiked_pca_options* options, spiked_components* found);

/* The same of samples with missing entries: "uniform", or NULL for none. noise_level, debiased and shrunk are those of
 * the whole data, eigenvalues and bulk_edge those of the weighted. */
SPIKED_API int spiked_pca_missing(const spiked_matrix* data, const char* missing, const spiked_pca_options* options,
                                  spiked_components* found, double* share_seen);

/* -------------------------------------------------------------------------------------------------------- theory */

/* The eigenvalues of a covariance: a SPEC of `spiked theory` ("identity", "ar1:0.5", "uniform:1,10", "file:PATH"), or,
 * where spec is NULL, `count` eigenvalues with their weights, which sum to 1 (NULL: all the same). */
typedef struct spiked_spectrum {
    const char* spec;
    const double* values;
    const double* weights;
    int64_t count;
} spiked_spectrum;

/* The limiting law of S + A^(1/2) X B^(1/2), for n x d matrices with n / d = aspect. Immutable. */
typedef struct spiked_law spiked_law;

/* row and col are optional: identity. Sets *law, or to NULL on failure. */
SPIKED_API int spiked_law_create(const spiked_spectrum* row, const spiked_spectrum* col, double aspect,
                                 spiked_law** law);
/* The law of --seen share_seen of `spiked theory`, where entries are missing. signal_square: 0 for the limit, or the
 * sum of squared strengths over the rows of a size. Lists of eigenvalues are diagonal; SPIKED_USAGE where no side is.
 */
SPIKED_API int spiked_law_create_missing(const spiked_spectrum* row, const spiked_spectrum* col, double aspect,
                                         double share_seen, double signal_square, spiked_law** law);
SPIKED_API void spiked_law_free(spiked_law* law); /* NULL is allowed */

/* The bulk of the noise; `spiked theory` describes each number. */
typedef struct spiked_bulk {
    double bulk_edge;           /* upper edge, an eigenvalue */
    double lower_edge;          /* of the continuous part */
    double detection_threshold; /* the smallest strength with an outlier above the edge */
    double tracy_widom_scale;   /* g: g d^(2/3) (largest eigenvalue - edge) -> TW1 */
    double mass_at_zero;        /* fraction of the n eigenvalues that are 0 */
    double mean;                /* of the n eigenvalues */
    int64_t regular_edge;       /* 0 where the edge is that of a few detached eigenvalues */
} spiked_bulk;

SPIKED_API int spiked_law_bulk(const spiked_law* law, spiked_bulk* bulk);

/* One signal under the law. Where it is not detectable, the outlier is the edge, overlaps and shrunk values are 0. */
typedef struct spiked_spike {
    double strength;
    double outlier; /* limit of the observed eigenvalue */
    double stieltjes_left;
    double stieltjes_right; /* at the outlier; negative */
    double overlap_left;
    double overlap_right;
    double shrunk_frobenius; /* the optimal singular value for each loss */
    double shrunk_operator;
    double shrunk_nuclear;
    int64_t detectable; /* 0 or 1 */
} spiked_spike;

/* strengths: count of them, each at least 0; spikes: an array of count structs, in the same order. */
SPIKED_API int spiked_law_spikes(const spiked_law* law, const double* strengths, int64_t count, spiked_spike* spikes);

/* Density and distribution function of the n noise eigenvalues at x[0 .. count-1] (finite); each output is optional.
 * The density is that of the continuous part, and infinite at a lower edge of 0. */
SPIKED_API int spiked_law_density(const spiked_law* law, const double* x, int64_t count, double* density, double* cdf);
/* The same on the grid of `spiked theory --density`: count >= 2 points from edge to edge, which x receives. */
SPIKED_API int spiked_law_curve(const spiked_law* law, int64_t count, double* x, double* density, double* cdf);
/* The smallest x with cdf(x) >= probability, for count probabilities in [0, 1]. */
SPIKED_API int spiked_law_quantiles(const spiked_law* law, const double* probabilities, int64_t count, double* x);

/* -------------------------------------------------------------------------------------------------------- codecs */

/* A method at one width for rows of one length: rotations, codebooks and projections are drawn once. Immutable. */
typedef struct spiked_codec spiked_codec;

/* method: a quantizer or SPECTRAL+QUANTIZER, as in `spiked quantize`: "tq-mse", "eoptshrink+tq-mse", "svd:1+kivi".
 * (`unrope+` is rejected: the positions of keys are the caller's.) Or "causal-klt" or "causal-klt-joint": its rows are
 * the tokens of a whole sequence in their order, keys without their rotary embedding, and bits the stored bits an
 * entry. dim: entries of a row. bits: index bits of an entry. options: optional; "key=value" separated by blanks or
 * commas, the options of `spiked quantize` without their dashes: rotation codebook norm group factor-bits
 * factor-codebook open-loop axis residual, where they have an effect on the method (SPIKED_USAGE otherwise); seed
 * (hexadecimal, default 0x5eed); index (which rotation of the seed, default 0: one per layer, head and side). A method
 * that begins with mean+ needs axis=key or axis=value: only keys have their means stored. A causal method takes keys
 * and values instead, the numbers of heads whose columns stand beside each other, keys first; each is then scaled to
 * equal spread. Default: one head, not scaled. Sets *codec, or to NULL on failure. */
SPIKED_API int spiked_codec_create(const char* method, int64_t dim, double bits, const char* options,
                                   spiked_codec** codec);
SPIKED_API void spiked_codec_free(spiked_codec* codec); /* NULL is allowed */

/* The items of a ledger: what the stored bits are spent on, in the order of the JSON documents. */
#define SPIKED_LEDGER_ITEMS 14
/* Its name, "indices", "signs", ..; NULL unless 0 <= item < SPIKED_LEDGER_ITEMS. Static. */
SPIKED_API const char* spiked_ledger_item(int64_t item);

/* The size of a coded block, and its error. */
typedef struct spiked_code {
    double ledger[SPIKED_LEDGER_ITEMS]; /* bits per entry */
    double bits_per_entry;              /* their sum, times the entries 8 times the bytes but for a last unfilled one */
    double paper_bits;  /* by the paper's formula, without norms and singular values; NaN: it has none */
    double relative_l2; /* ||X - X^||_F / ||X||_F; NaN from spiked_codec_encode, which decodes nothing */
    int64_t bytes;
    int64_t rank; /* of the low-rank part */
} spiked_code;

/* Encodes a block of any number of rows and `dim` columns. The bytes are the code alone: method, width, options, seed
 * and the number of rows are not in them, so that only an equal codec decodes them. They are the bytes of
 * `spiked kv golden`.
 * Writes to `bytes` and sets *length; SPIKED_TOO_SMALL when capacity < *length, where nothing is written (bytes may be
 * NULL when capacity is 0). A capacity of 8 bytes an entry and 64 KiB more suffices for usual methods.
 * code: optional. */
SPIKED_API int spiked_codec_encode(const spiked_codec* codec, const spiked_matrix* block, uint8_t* bytes,
                                   size_t capacity, size_t* length, spiked_code* code);

/* Decodes to decoded->rows rows; decoded->cols must be `dim`. SPIKED_INPUT for bytes that are no code of this many
 * rows. Bytes may come from anyone: no bytes make this function read or write outside its arguments. */
SPIKED_API int spiked_codec_decode(const spiked_codec* codec, const uint8_t* bytes, size_t length,
                                   const spiked_matrix* decoded);

/* A sequence that a causal method codes while its tokens arrive, each block of 128 from those before it. It changes
 * with every block: one thread at a time. */
typedef struct spiked_stream spiked_stream;

/* codec: of a causal method; it need not outlive the stream. tokens: those that will come, for which the stored bits
 * are within 1 % of the codec's; 0: not known, then within .75 % from the fourth block on, and up to half as much more
 * in the first. Queries are not known, so that no keys are weighted. Sets *stream, or to NULL on failure. */
SPIKED_API int spiked_stream_create(const spiked_codec* codec, int64_t tokens, spiked_stream** stream);
/* Another stream in the same state, which goes on apart from the first. Sets *copy, or to NULL on failure. */
SPIKED_API int spiked_stream_copy(const spiked_stream* stream, spiked_stream** copy);
SPIKED_API void spiked_stream_free(spiked_stream* stream); /* NULL is allowed */
/* Codes the next rows: 128 of them, or fewer at the end of the sequence.
 * decoded: optional; the same shape, receives the rows as a decoder has them; may be `rows` itself.
 * bits: optional; receives the bits that are stored for them, header and length included.
 * An error of the arguments leaves the stream as it was. After any other, and after SPIKED_STOPPED, it takes no rows.
 */
SPIKED_API int spiked_stream_append(spiked_stream* stream, const spiked_matrix* rows, const spiked_matrix* decoded,
                                    double* bits);

/* `count` matrices of one shape: block b begins block_stride * b elements after first.data. */
typedef struct spiked_blocks {
    spiked_matrix first;
    int64_t count;
    int64_t block_stride;
} spiked_blocks;

/* Encodes and decodes blocks by several codecs. A block is decomposed once for all codecs.
 * codecs: `codecs_count` of them, each with dim = blocks->first.cols.
 * decoded: optional; codecs_count * blocks->count matrices of the shape of the blocks: that of codec c and block b is
 *   block c * blocks->count + b of it.
 * codes: optional; codecs_count * blocks->count structs in the same order.
 * threads: 0 is one per processor. Results do not depend on it.
 * poll: optional; called with poll_data from the calling thread alone, about every 50 ms. When it returns a value other
 *   than 0, no further block is begun, decompositions end as by spiked_stop_when, and the call returns SPIKED_STOPPED.
 * A block that fails (NaN, for example) fails the call, and the message names it, counted from 0. */
SPIKED_API int spiked_roundtrip(const spiked_codec* const* codecs, int64_t codecs_count, const spiked_blocks* blocks,
                                int64_t threads, int (*poll)(void*), void* poll_data, const spiked_blocks* decoded,
                                spiked_code* codes);

#ifdef __cplusplus
}
#endif

#endif
