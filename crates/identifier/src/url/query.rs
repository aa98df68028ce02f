//! Queries: the parameters of a page, without those that only track readers.

/// The parameters of a query, as names and values. Parameters without a `=` have an empty value.
pub fn parameters(query: &str) -> impl Iterator<Item = (&str, &str)> {
    parts(query).map(|part| part.split_once('=').unwrap_or((part, "")))
}

/// The value of the first parameter with this name that has one.
pub fn value<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    let mut values = parameters(query).filter(|(other, value)| *other == name && !value.is_empty());
    values.next().map(|(_, value)| value)
}

/// The query without empty and tracking parameters. The others keep their order.
pub fn without_tracking(query: &str) -> String {
    let kept = parts(query).filter(|part| !is_tracking(part.split('=').next().unwrap_or_default()));
    kept.collect::<Vec<_>>().join("&")
}

fn parts(query: &str) -> impl Iterator<Item = &str> {
    query.split('&').filter(|part| !part.is_empty())
}

fn is_tracking(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with(CAMPAIGN) || TRACKING.contains(&name.as_str())
}

/// The start of the names of campaign parameters:
/// <https://support.google.com/analytics/answer/10917952>.
const CAMPAIGN: &str = "utm_";

/// Parameters that browsers remove from any address, because they only track readers. Sources:
///
/// - Firefox's list: <https://firefox-source-docs.mozilla.org/toolkit/components/antitracking/anti-tracking/query-stripping/index.html>
/// - Brave's list, with an issue for each parameter:
///   <https://github.com/brave/brave-core/blob/master/components/query_filter/utils.cc>
///
/// Names that Brave removes on some sites or conditions only are not included, nor those that may
/// identify a page elsewhere, such as s_cid.
#[rustfmt::skip]
const TRACKING: &[&str] = &[
    "__hsfp", "__hssc", "__hstc", "__s", "_bhlid", "_branch_match_id", "_branch_referrer",
    "_hsenc", "_kx", "_openstat", "at_recipient_id", "at_recipient_list", "bsft_clkid", "bsft_uid",
    "dclid", "et_rid", "fb_action_ids", "fb_comment_id", "fbclid", "gclid",
    "guce_referrer", "guce_referrer_sig", "hsctatracking", "irclickid", "mc_eid",
    "ml_subscriber", "ml_subscriber_hash", "msclkid", "mtm_cid", "oly_anon_id",
    "oly_enc_id", "pk_cid", "rb_clickid", "srsltid", "ss_email_id", "twclid",
    "unicorn_click_id", "vero_conv", "vero_id", "wbraid", "wickedid", "yclid", "ymclid", "ysclid",
];
