"""Numbers that decide something in this room: what each means, where it comes from, what half or twice of it does."""

# Which of the two routes to a density is taken -----------------------------------------------------------------------

#: Neighbours for each feature from which on the d x d factor that grows a column at a time in numpy is faster than one
#: K x K factor of LAPACK. With 100 neighbours, each in batches of its own, it takes half the time of the other at 2
#: features, as long at 4, and 3.4 times as long at 8, where half would still take it; with twice the other, of twice
#: the time, is taken at 3. Densities are the same within rounding.
UPDATED_NEIGHBOURS = 25
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

#: Iterations of libsvm, which need not end on features of very different scales. With 20 neighbours it takes up to 152
#: on standardised tables and 61,600 on wine as it is, where half or twice changes nothing.
LONGEST_RUN = 10**6
