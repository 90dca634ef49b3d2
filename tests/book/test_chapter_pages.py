"""What pages of chapters get without a word of it in the chapters."""

import chapter_pages
from docutils import nodes


def test_a_per_cent_sign_stays_with_its_number():
    paragraph = nodes.paragraph("", "", *map(nodes.Text, ("It errs on ", "30", " % of 95 % here, not %.")))
    paragraph += nodes.literal("", "", nodes.Text("95 %"))
    chapter_pages.keep_percent(None, nodes.section("", paragraph))
    assert paragraph.astext() == "It errs on 30\u00a0% of 95\u00a0% here, not %.95 %"
