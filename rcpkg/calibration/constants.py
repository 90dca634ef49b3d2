"""Numbers that decide something in this room: what each means, where it comes from, what half or twice of it does.

Those of the first section and `PATTERNS` decide which model comes out; the tolerances decide how near to it a search
ends, and those of rows left out what is chosen or warned of. No other moves an optimum: those of time choose among
steps that end at the same model, those of rounding lie far above what rounding does and far below what rows tell, and
those of size say what is too large to be tried. Where one number decides several things, each has its line.
"""

from rcpkg.linalg import HALVINGS, ROUNDING

# What a learner does unless it is told --------------------------------------------------------------------------------

#: Updates of the sources: rc2025's 64 iterations, of which the first is the closed form
FIXED_STEPS = 63
#: Weight of the target: does best in the mean over the data sets of the study target-weights. A third of it costs .020,
#: three times .005 nats a row.
TARGET_WEIGHT = 3.0
#: Weights that folds of large tables try, and `TableClassifier`: about half decades. Of 42 fits to small tables tenfold
#: steps lose .004 nats a row in the mean, .025 at most, and take .84 of the time; twice as many weights gain .001, .009
#: at most, and take 1.3 times as long.
TARGET_WEIGHTS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
#: Tenfold steps of one direction at most where weights are sought: without a bound rows of noise walk on, which gains
#: 4e-5 nats a row on parity5. On four tables of noise half loses up to .0014 nats a row, twice gains none.
MOST_DECADES = 4
#: Rows, or what they count, that are learnt from at once of a stream: steps of many rows at once are too long. On
#: 20,000 rows of three draws, QDA and b = .05, half loses .0004 nats less and takes twice as long, twice .0001 to .0019
#: more.
LARGEST_BLOCK = 250
#: What the losses of so many rows count for those of the next, where a stream tells its better predictor. With all
#: alike the poor start of steps for b = .1 lets 9,000 rows of connect-4 be predicted by counts, which lose .04 nats; so
#: do, on two draws, .95 for some sizes of blocks, while .81 is as good.
FADING = 0.9

# Safe steps (chapter 6) -----------------------------------------------------------------------------------------------

#: Lengths double, and on separable data the gradient vanishes while they do: their end; and length relative to the last
#: accepted step below which a point counts as stationary. Twice or half is one doubling or halving more.
LONGEST_STEP, SHORTEST_STEP = 2.0**HALVINGS, 2.0**-HALVINGS
#: Past updates from which an accelerated step takes the curvature: with 2 or 10 of them six searches take up to 2 steps
#: less or 9 more
SECANTS = 5
#: One step in so many is plain: these alone carry the proof of the linear rate. With 2 or 6 six searches take up to 11
#: steps less or 5 more.
PLAIN_EVERY = 3

# Newton's method and L-BFGS (chapter 9) -------------------------------------------------------------------------------

#: Pairs of steps and changes of the gradient that L-BFGS keeps; scipy keeps 10. A pair costs 4p multiplications a step.
#: With half or twice five fits of the race to the optimum take up to four steps more.
MEMORY = 20
#: Least share of the curvature at equal posteriors that is added where a whole step fails, and least that the next step
#: may go in a coordinate. Half or twice changes none of 169 steps of five fits of the race, and of 3,555 of 154
#: small hostile tables 2 and 12.
LEAST = 1e-3
#: How far a coordinate may go in the first step. Coordinates are log-odds in units of whitened features: 50 is sure
#: beyond rounding, and what lies farther is the curvature's blindness. With 25 154 fits of small hostile tables
#: take 3,579, with 100 3,556 steps in place of 3,555. Also the step that the curvature of a coordinate allows where a
#: probability has vanished; the trust region shortens it.
RADIUS = 50.0
#: Share of the slope that is left at the end of a step which was too short, as usual for Newton's method (Nocedal and
#: Wright, 2006, 3.1). With .8 or .95 154 fits of small hostile tables take 9 or 2 % more passes, and with .5 LDA on
#: breast cancer takes three times as long.
STEADY = 0.9
#: Steps without a gain after which rounding is taken to have the say. Half changes none of ten choices of a weight,
#: twice makes ten more passes of no use.
MOST_STALLED = 10

# What is faster -------------------------------------------------------------------------------------------------------
# The bar of each is the race to the optimum (chapter 9). The optimum is the same: steps differ, not what they end at.

#: Numbers that are kept, 400 MB; half or twice takes half or twice of that. They are
#: - features of all rows, which beyond are formed in each pass, 1.5 times as long,
#: - entries of the blocks of the classes, beyond which the diagonal stands for the Hessian,
#: - entries of a kernel of rows for each class, beyond which no system of rows takes the place of a Hessian,
#: - values of the rows that the test of calibration draws anew, where weights repeat them.
MOST_KEPT = 5e7
#: Speed of products of dense matrices, of which a curvature takes most, relative to what else a pass over the rows
#: does, and to products of sparse matrices. By it
#: - a curvature serves for as many passes as it took,
#: - steps of a path over weights share a Hessian, the more of them, the more passes it takes,
#: - L-BFGS of sparse rows goes on for as long as ten Hessians take,
#: - features are sparse from so many entries for one that is not zero.
#: With half eight fits of the race with a ridge take .93, and two without one 1.4 times as long, with twice 1.06.
#: L-BFGS first in all fits, which `patience` spares those without a ridge, takes 1.6 times as long on letter and
#: pendigits.
SPEEDUP = 8.0
#: Rows that stand for all, of which
#: - a curvature takes so many for each coordinate, and of each class for each feature,
#: - combinations of features that may vanish are taken from so many for each feature, and tried on all.
#: With half seven fits of the race take 1.14 times as long in the mean, with twice 1.00, but .87 on adult.
ROWS_PER_COORDINATE = 20
#: What an approximation may leave out, as a part of
#: - the gradient, by conjugate gradients,
#: - the mean weight of the rows for a pair of classes, by a sampled curvature,
#: - the p/2n nats a row that the optimum of n rows lacks, by a search on a sample,
#: - one, by the ridge, for each row that a sampled row stands for, which bends what sampled sparse rows do not show,
#: - the time of L-BFGS of sparse rows, by one Hessian,
#: - the last promise, by an older Hessian that is to serve once more, or the tolerance, by one of other rows,
#: - its square: a row's own curvature in the metric of the target's, by `Woodbury` on the path over weights.
#: With half or twice seven fits of the race take 1.01 or .98 times as long, with up to two steps more; ten choices of a
#: weight are the same, with posteriors to 2e-13 and log-losses of rows left out to 1e-5. With half of the ridge naive
#: Bayes on adult takes 47 in place of 42 steps.
COARSE_TOL = 0.1
#: Steps of L-BFGS before conjugate gradients, or on a sample, at most: on digits as naive Bayes with a ridge 66 steps
#: become 43 with half of them and 103 with twice. With as many as ten Hessians take, 879, QDA on satellite without a
#: ridge is nowhere after 150.
#: Also steps along directions that no row sees where a model separates the rows: they take about ten, or never end, as
#: for QDA on 400 rows of 30 features, which took 37 s and takes 2.
PATIENCE = 50
#: Products of conjugate gradients, at most: on 170 rows of 33 features in units a million apart, as QDA with a ridge
#: and weights, a fit takes 1.5 s, and 10 s with as many products as coordinates. 36 steps for satellite as naive Bayes
#: take 1,106 with half, 1,506, and 2,306 with twice, and end within 1e-10 of each other.
MOST_PRODUCTS = 200

# Where a search ends --------------------------------------------------------------------------------------------------

#: Gain in nats a row and pseudo-row that a step promises at the optimum of a weight, from which rows are left out, and
#: along directions that no row sees: posteriors to 1e-7, though steps converge linearly; half or twice takes up to two
#: steps more or one less
NEWTON_TOL = 2e-15
#: The same of a search by safe steps, and of Newton's in folds; half or twice takes a step of either more or less
SAFE_TOL = 1e-8

# What rows left out say -----------------------------------------------------------------------------------------------

#: Blocks of rows that the closed form loses in turn, where rows are more than that: half or twice costs in proportion
MOST_BLOCKS = 200
#: Scores of rows, r − 1 a row, whose part in an optimum is looked at after a fit. Half makes the estimate of what a row
#: gains rougher by a factor of 1.4, twice takes twice as long.
MOST_SCORES_LEFT_OUT = 600
#: Nats a row that are worth a warning: by so many the closed form must do better than a fit with a given weight. Half
#: or twice changes none of 50 fits to small tables, of which one warns. The next two are nats a row, too.
WORTH_WARNING = 0.01
#: By which a model that rows left out chose may be behind the closed form, within a standard error, without a warning:
#: with half or twice none of 40 choices warns, either
MOST_BEHIND = 2 * WORTH_WARNING
#: That a weight must gain over the last for the next one, or a warning, to be worth while. With half 40 choices try 341
#: in place of 338 candidates and end at the same weights, with twice they try 334, and one loses 4e-5 nats.
LEAST_GAIN = WORTH_WARNING / 10
#: Ends safe steps in folds that take the place of leave-one-out, times the share of the target in all rows: half of it
#: bounds what the objective lacks a row. With half or twice the least log-losses of six fits to rows with gaps move by
#: up to .0005 nats, and one weight by a step.
FOLD_TOL = COARSE_TOL * LEAST_GAIN
#: Step of a row's statistics by which a target is differentiated, and share of the greatest derivative that is none:
#: half or twice changes no posterior by 1e-7. With the square root of rounding sums are not seen to move their own
#: entries alone, and `RiskCalibrationCV` of LDA on vehicle takes a fifth longer.
DIFFERENCE = ROUNDING ** (1 / 3)

# What is too large ----------------------------------------------------------------------------------------------------

#: Coordinates of a dense Hessian, 8 MB, and of what leave-one-out inverts. Directions that no row sees may be half as
#: many more, those of QDA with 53 features, since a fit searches them once; `Woodbury` takes systems of four times as
#: many, 128 MB. Without a target those of r classes count √(r − 1) times, as the blocks of the classes, which else
#: stand for it, take r − 1 times less. With half `RiskCalibrationCV` of QDA on vehicle goes to folds, 2.7 times as
#: long; with twice GaussianNB on 300 rows of digits takes 2.8 to 4.9, and satellite as naive Bayes 5.7 times as long.
MOST_PARAMETERS = 1000
#: Patterns of gaps in view that are drawn for each rate and dealt out to the rows, so that many rows share the work for
#: a pattern. Twice takes up to twice as long, half repeats patterns.
PATTERNS = 64
