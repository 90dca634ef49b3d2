"""Numbers that decide something in this room: what each means, where it comes from, what half or twice of it does."""

from math import log10

from rcpkg.linalg import EPS, ROUNDING

# Rounding -------------------------------------------------------------------------------------------------------------
# Far above the rounding of a float and far below what rows tell: half or twice decides otherwise only for statistics
# that are rounding themselves.

#: A correlation matrix has an inverse if its rounding times the trace of the inverse is less: two digits are left;
#: half or twice leaves a third of a digit more or less
LEAST_DIGITS = 0.01
#: Likewise a variance is positive if it exceeds this share of the second moment beneath it, of which it is a difference
VARIANCE_ROUNDING = EPS / LEAST_DIGITS
#: Decimals of a mutual information in nats; beyond them is rounding, which must not decide between equal features
DECIMALS = round(-log10(ROUNDING))
#: A mean that lies farther from the median, in typical deviations, is no origin: moments about it lose eight digits,
#: and at half or twice .6 less or more
FAR_MEAN = 1e4
#: Before a ridge, directions of X with a deviation of less than one part in so many count as if they had that: the
#: ridge has the curvature of its fourth power beside that of the rows, which is to keep its digits. Half or twice
#: changes the way of a search, not where it ends.
STEEPEST = 100.0

# Natural parameters without a model -----------------------------------------------------------------------------------
# Such η come from L-BFGS and from steps that are too long; the common precision that they get changes no posterior.

#: What the least eigenvalue of a precision, relative to the mean size of all, is raised to where it is not positive.
#: Twice makes the joint model narrower in one direction, half wider.
LEAST_PRECISION = 0.1

# EM -------------------------------------------------------------------------------------------------------------------

#: ⟨Δs, Δη⟩ a row, twice a Kullback-Leibler divergence in nats, of the step that ends EM: far below sampling error.
#: Steps shorten by a factor, so that half or twice of it is a step more or less.
EM_TOL = 1e-12

#: Greatest number of components that "cv" tries. Steps take time in proportion to the number: half takes three tenths
#: of the time of all that are tried, twice 3.6 times as long.
MOST_COMPONENTS = 4
#: Steps of EM from each start, of which the best one goes on. Half or twice of it changes the time of a fit, and which
#: optimum is found where some are nearly equal.
SHORT_STEPS = 10
#: A class of fewer rows for each component has fewer components. With half a component may have one row, and no
#: variance; with twice a class of six rows has one component in place of three.
ROWS_PER_COMPONENT = 2
#: Rows below which a component without pseudo-rows counts as lost; far below one row, which half or twice is, too
LOST = 1e-4

# What is too large ----------------------------------------------------------------------------------------------------

#: Cells of the tables of all classes, of families or of pairs of features: 128 MB for each copy. Half or twice moves
#: the networks that are refused, and the parents that are passed over, by a feature of two states; a feature whose
#: pairs of states with all others are more than half of it is nearly an identifier, and gets no parent.
LARGEST_TABLES = 2**24
#: A larger code is taken for an identifier or a measurement, not a category: tables have a cell for each code up to the
#: greatest, which takes 8 MB a class, and with half or twice 4 or 16
LARGEST_CODE = 2**20

# Rows at a time -------------------------------------------------------------------------------------------------------
# Results are the same. Measured on tables of 6,000 to 300,000 rows: half or twice costs up to a tenth of a pass.

#: Rows of one product for all classes, whose intermediate products then stay in the cache
BLOCK = 512
#: Features of a tile of a triangular or symmetric matrix, of which products leave out what lies above the diagonal
TILE = 16
#: Entries of an average table of the rows with gaps that go together in a network. With half of it rows of few gaps
#: take up to 1.4 times as long, for the calls of numpy; with twice 1.3 times, since different patterns go together.
TABLE_ENTRIES = 2**13
#: Rows from which medians are taken, and of a class those that components start from, if there are more; half or twice
#: shows the same order of magnitude
TYPICAL_ROWS = 1000
#: Rows of each block by which a model sees how all rows lie, before it sums them about their centre. Half moves
#: posteriors of QDA, LDA and GaussianNB on iris, wine and breast cancer by up to 4e-12, twice by nothing.
BLOCK_SAMPLE = 64
