"""Numbers that decide something in this room: what each means, where it comes from, what half or twice of it does."""

# Which of the two routes to a density is taken -----------------------------------------------------------------------

#: Neighbours for each feature from which on the d x d factor that grows a column at a time in numpy is faster than one
#: K x K factor of LAPACK: with 100 neighbours it takes .4 of the time of the other at 4 features, and 10 times its time
#: at 64. Half or twice moves the change, where both take about as long; densities are the same within rounding.
UPDATED_NEIGHBOURS = 7
#: Largest error of a log density by the K x K factor, by a bound that is mostly a thousand times what is found; beyond,
#: the growing factor is taken, whose error grows more slowly. Half or twice changes the route of few queries.
FACTOR_ROUNDING = 1e-5
#: Largest error of a log density by the growing factor, by an estimate; beyond, the query is refused, since the seed
#: is lost in rounding. Half or twice moves the spread of neighbours that is refused by the same factor.
LOST_SEED = 1e-3

#: Mean squared distance from the mean below which local nearest means warn: their log densities, of about 1, keep a
#: difference of it to four digits or fewer. Half or twice warns of half or twice the spread.
LOST_DISTANCE = 1e-12

# Time ------------------------------------------------------------------------------------------------------

#: Iterations of libsvm, which need not end on features of very different scales; far more than it takes on others.
LONGEST_RUN = 10**6
