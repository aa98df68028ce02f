//! Tests of the addresses of services: addresses without a scheme, pages below a profile,
//! posts, and domains that moved.

use super::{broken, check_any, form};
use crate::rejection::Rule;
use crate::{Identifier, Kind, RawIdentifier, Rules};

fn assert_forms(cases: &[(&str, &[&str])]) {
    for (address, spellings) in cases {
        for typed in spellings.iter().chain([address]) {
            assert_eq!(form(RawIdentifier::Url(typed)), *address, "{typed}");
            check_any(RawIdentifier::Url(typed));
        }
    }
}

fn assert_rejected(cases: &[(&str, Rule, Option<usize>)]) {
    for (typed, rule, position) in cases {
        assert_eq!(broken(RawIdentifier::Url(typed)), (*rule, *position), "{typed}");
        check_any(RawIdentifier::Url(typed));
    }
}

#[test]
fn a_dotted_host_with_a_path_needs_no_scheme() {
    let cases: [(&str, &[&str]); 7] = [
        (
            "https://www.linkedin.com/in/ann-lee",
            &[
                "linkedin.com/in/ann-lee",
                "www.linkedin.com/in/ann-lee",
                "LinkedIn.com/in/Ann-Lee/?trk=x",
                " de.linkedin.com/in/ann-lee/ ",
            ],
        ),
        ("https://github.com/x", &["github.com/x", "www.github.com/X"]),
        (
            "https://www.example.com/joe?a=1",
            &["www.example.com/joe?a=1", "www.example.com/joe/?a=1"],
        ),
        ("https://xn--exmple-cua.com/joe", &["exämple.com/joe", "EXÄMPLE.com/joe#top"]),
        ("https://joe.example", &["joe.example/", "joe.example//"]),
        ("https://www.threads.com/@ann", &["threads.net/@ann", "www.threads.net/@Ann"]),
        ("https://www.youtube.com/@ann", &["youtube.com/@ann/videos"]),
    ];
    assert_forms(&cases);
}

#[test]
fn other_text_without_a_scheme_is_rejected() {
    let cases = [
        ("linkedin.com", Rule::UrlSyntax, None),
        ("www.example.com", Rule::UrlSyntax, None),
        ("www.example.com?joe", Rule::UrlSyntax, None),
        ("joe/smith", Rule::UrlSyntax, None),
        ("/in/ann", Rule::UrlSyntax, None),
        ("//linkedin.com/in/ann", Rule::UrlSyntax, None),
        ("12.05/2024", Rule::UrlSyntax, None),
        ("127.0.0.1/joe", Rule::UrlSyntax, None),
        ("x.y/joe", Rule::UrlSyntax, None),
        ("linkedin..com/in/ann", Rule::UrlSyntax, None),
        ("Ann Lee linkedin.com/in/ann", Rule::UrlSyntax, None),
        ("joe@example.com/x", Rule::UrlSyntax, None),
        ("linkedin.com:443/in/ann", Rule::UrlScheme, Some(0)),
        // The place is one of the typed text.
        ("example.com/a b", Rule::UrlBlank, Some(13)),
        (" example.com/a#/joe", Rule::UrlFragment, Some(14)),
        ("example.com/100%", Rule::UrlEscape, Some(15)),
        ("linkedin.com/feed", Rule::UrlPage, None),
        ("lnkd.in/abc", Rule::UrlWrapper, None),
    ];
    let is_syntax = |case: &(&str, Rule, Option<usize>)| case.1 == Rule::UrlSyntax;
    for (typed, ..) in cases.iter().filter(|case| is_syntax(case)) {
        assert!(Identifier::parse(RawIdentifier::Url(typed)).is_err(), "{typed}");
    }
    for case in cases.iter().filter(|case| !is_syntax(case)) {
        assert_rejected(&[*case]);
    }
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table of addresses")]
fn the_pages_below_a_profile_are_the_profile() {
    let cases: [(&str, &[&str]); 8] = [
        (
            "https://www.linkedin.com/in/ann-lee",
            &[
                "https://www.linkedin.com/in/ann-lee/overlay/contact-info/",
                "https://www.linkedin.com/in/ann-lee/details/experience/",
                "https://www.linkedin.com/in/ann-lee/details/skills/?detailScreenTabIndex=0",
                "https://www.linkedin.com/in/ann-lee/recent-activity/all/",
                "https://www.linkedin.com/in/Ann-Lee/en",
                "https://www.linkedin.com/in/ann-lee/de/?originalSubdomain=de",
                "https://www.linkedin.com/in/ann-lee/zh-cn",
                "https://www.linkedin.com/mwlite/in/ann-lee",
                "https://www.linkedin.com/mwlite/profile/in/Ann-Lee",
                "https://www.linkedin.com/comm/in/ann-lee?midToken=x",
                "https://uk.linkedin.com/in/ann-lee",
                "https://de.linkedin.com/in/ann-lee/en-us",
                "https://pt-br.linkedin.com/in/ann-lee",
                "linkedin.com/in/ann-lee/detail/contact-info",
            ],
        ),
        (
            "https://x.com/ann_lee",
            &[
                "https://x.com/ann_lee/with_replies",
                "https://twitter.com/Ann_Lee/media",
                "https://mobile.twitter.com/@ann_lee/likes?s=20",
                "https://x.com/ann_lee/photo",
                "https://x.com/ann_lee/followers/",
                "m.x.com/ann_lee/highlights",
            ],
        ),
        (
            "https://www.instagram.com/ann.lee",
            &[
                "https://www.instagram.com/ann.lee/reels/",
                "https://www.instagram.com/ann.lee/tagged/?hl=de",
                "https://instagram.com/@Ann.Lee/followers",
                "https://www.instagram.com/stories/ann.lee/",
                "instagram.com/ann.lee/saved/",
            ],
        ),
        (
            "https://www.facebook.com/annlee",
            &[
                "https://www.facebook.com/ann.lee/about",
                "https://m.facebook.com/Ann.Lee/photos/?ref=x",
                "https://www.facebook.com/ann.lee/about_work_and_education",
                "https://de-de.facebook.com/ann.lee/friends",
                "https://www.facebook.com/pg/ann.lee/posts/",
                "fb.com/annlee/videos",
            ],
        ),
        (
            "https://www.facebook.com/100012345678901",
            &[
                "https://www.facebook.com/people/Ann-Lee/100012345678901/",
                "https://www.facebook.com/pages/Ann-Lee/100012345678901?sk=info",
                "https://www.facebook.com/p/Ann-Lee-100012345678901/",
                "https://www.facebook.com/groups/42/user/100012345678901/",
                "https://facebook.com/profile.php?id=100012345678901&sk=photos",
            ],
        ),
        (
            "https://www.threads.com/@ann.lee",
            &[
                "https://www.threads.net/@ann.lee",
                "https://threads.net/@Ann.Lee/replies",
                "https://www.threads.com/%40ann.lee/media?xmt=a",
                "threads.com/@ann.lee/reposts",
            ],
        ),
        (
            "https://www.youtube.com/@ann-lee",
            &[
                "https://m.youtube.com/@Ann-Lee/videos",
                "https://youtube.com/@ann-lee/community?app=desktop",
                "youtube.com/%40ann-lee/about",
            ],
        ),
        (
            "https://www.reddit.com/user/ann_lee",
            &[
                "https://old.reddit.com/u/Ann_Lee/",
                "https://www.reddit.com/user/ann_lee/comments/",
                "https://de.reddit.com/user/ann_lee/submitted?sort=new",
            ],
        ),
    ];
    assert_forms(&cases);
}

#[test]
fn other_services_have_one_address_for_a_profile() {
    let cases: [(&str, &[&str]); 9] = [
        (
            "https://www.youtube.com/channel/UCabC-1",
            &[
                "https://m.youtube.com/channel/UCabC-1/featured",
                "youtube.com/channel/UCabC-1?sub_confirmation=1",
            ],
        ),
        ("https://www.youtube.com/user/Ann", &["https://de.youtube.com/user/Ann/playlists"]),
        ("https://www.tiktok.com/@ann.lee", &["https://m.tiktok.com/@Ann.Lee?lang=en"]),
        (
            "https://bsky.app/profile/ann.bsky.social",
            &["https://www.bsky.app/profile/Ann.bsky.social/followers"],
        ),
        ("https://www.twitch.tv/ann_lee", &["https://m.twitch.tv/Ann_Lee/videos?filter=all"]),
        (
            "https://www.pinterest.com/annlee",
            &["https://www.pinterest.co.uk/AnnLee/_saved/", "https://fr.pinterest.com/annlee/pins"],
        ),
        ("https://t.me/ann_lee", &["https://t.me/s/Ann_Lee?before=5", "t.me/ann_lee?start=1"]),
        (
            "https://www.last.fm/user/Ann",
            &["https://www.lastfm.de/user/Ann/library", "https://www.last.fm/de/user/Ann"],
        ),
        (
            "https://www.imdb.com/name/nm0000158",
            &["https://www.imdb.de/name/nm0000158/bio", "https://m.imdb.com/de/name/nm0000158/"],
        ),
    ];
    assert_forms(&cases);
}

#[test]
fn domains_that_moved_are_the_new_ones() {
    let cases: [(&str, &[&str]); 9] = [
        ("https://www.threads.com/search-me", &["https://threads.net/search-me"]),
        ("https://x.com/i/lists/42", &["https://twitter.com/i/lists/42?s=20"]),
        ("https://www.twitch.tv/ann", &["https://www.twitch.com/Ann"]),
        ("https://t.me/ann_lee", &["https://telegram.me/ann_lee", "https://telegram.dog/ann_lee"]),
        ("https://myspace.com/Ann", &["https://www.myspace.de/Ann", "https://myspace.fr/Ann"]),
        ("https://ra.co/dj/ann", &["https://www.residentadvisor.net/dj/ann"]),
        ("https://vgmdb.net/artist/1", &["https://vgmdb.com/artist/1"]),
        (
            "https://vk.com/id1?w=wall1_2",
            &["https://m.vk.com/id1?w=wall1_2", "vkontakte.ru/id1?w=wall1_2"],
        ),
        (
            "https://ann.blogspot.com/2020",
            &["https://ann.blogspot.de/2020", "ann.blogspot.co.uk/2020"],
        ),
    ];
    assert_forms(&cases);
}

#[test]
fn posts_are_rejected() {
    let posts = [
        "https://www.linkedin.com/posts/ann-lee_hello-activity-712",
        "https://www.linkedin.com/feed/update/urn:li:activity:712/",
        "https://www.linkedin.com/pulse/hello-ann-lee",
        "https://x.com/ann/status/123",
        "https://twitter.com/Ann/statuses/123?s=20",
        "https://x.com/i/web/status/123",
        "x.com/ann/status/123/photo/1",
        "https://www.instagram.com/p/AbC/",
        "https://www.instagram.com/reel/AbC/?igsh=x",
        "https://www.instagram.com/reels/AbC",
        "https://www.instagram.com/ann/p/AbC/",
        "https://www.instagram.com/stories/ann/123/",
        "https://www.facebook.com/ann/posts/pfbid0abc",
        "https://www.facebook.com/ann/photos/a.1.2/345",
        "https://www.facebook.com/ann/videos/123/",
        "https://www.facebook.com/groups/42/posts/7/",
        "https://www.facebook.com/reel/123",
        "https://www.threads.net/@ann/post/AbC",
        "https://www.threads.com/t/AbC",
        "https://www.tiktok.com/@ann/video/123",
        "https://www.youtube.com/watch?v=abc",
        "https://www.youtube.com/shorts/abc",
        "youtube.com/playlist?list=PL1",
        "https://bsky.app/profile/ann.example/post/3k",
        "https://www.reddit.com/r/rust/comments/1/hello/",
        "https://www.reddit.com/user/ann/comments/1/hello/",
        "https://www.twitch.tv/videos/123",
        "https://www.pinterest.com/pin/123/",
        "https://t.me/ann_lee/42",
    ];
    for typed in posts {
        assert_rejected(&[(typed, Rule::UrlPost, None)]);
    }
    let message = Identifier::parse(RawIdentifier::Url(posts[3])).unwrap_err().to_string();
    assert_eq!(
        message,
        "not a valid url: rule url-post; give the address of the person's profile: this one is of \
         a post"
    );
    for typed in ["https://youtu.be/abc", "vm.tiktok.com/Zx", "https://www.facebook.com/share/1Ab"]
    {
        assert_rejected(&[(typed, Rule::UrlWrapper, None)]);
    }
}

/// Pages that look like those of a profile, and are none.
#[test]
fn pages_of_nobody_are_no_profiles() {
    let rejected = [
        ("https://www.linkedin.com/in/me/details/skills", Rule::UrlPage, None),
        ("https://www.instagram.com/explore/tagged", Rule::UrlPage, None),
        ("https://www.threads.net", Rule::UrlPage, None),
        ("https://www.youtube.com/results?search_query=ann", Rule::UrlPage, None),
        ("https://t.me/joinchat/AbC", Rule::UrlPage, None),
        ("https://lastfm.de/search?q=a", Rule::UrlPage, None),
    ];
    assert_rejected(&rejected);
    let cases: [(&str, &[&str]); 8] = [
        ("https://github.com/joe/media", &["https://www.github.com/joe/media"]),
        ("https://www.facebook.com/groups/42/about", &["https://fb.com/groups/42/about?x=1"]),
        ("https://x.com/not-a-name/media", &["https://twitter.com/not-a-name/media"]),
        ("https://www.facebook.com/p/Ann-2", &[]),
        ("https://www.facebook.com/Acme-Corp-42", &["https://facebook.com/Acme-Corp-42?ref=a"]),
        ("https://www.linkedin.com/company/acme", &["https://de.linkedin.com/company/acme"]),
        ("https://music.youtube.com/channel/UCa", &[]),
        ("https://gist.github.com/Joe", &[]),
    ];
    assert_forms(&cases);
}

#[test]
fn starts_of_addresses_are_folded() {
    for (typed, folded) in [
        ("linkedin.com/in/An", "https://www.linkedin.com/in/an"),
        ("threads.net/@An", "https://www.threads.com/@an"),
        ("https://twitter.com/i/lis", "https://x.com/i/lis"),
        ("https://old.reddit.com/u/An", "https://www.reddit.com/user/an"),
        ("https://ann.blogspot.de/20", "https://ann.blogspot.com/20"),
        ("https://example.com/An", "https://example.com/An"),
        ("linkedin.c", "linkedin.c"),
    ] {
        assert_eq!(Rules::PRESENT.fold_prefix(Kind::Url, typed), [folded], "{typed}");
    }
    // The page `/%40` has an identity of its own.
    let starts = ["https://www.threads.com/@", "https://www.threads.com/%40"];
    assert_eq!(Rules::PRESENT.fold_prefix(Kind::Url, "threads.net/%40"), starts);
    // So has the page of stories below stories, where no user has this name.
    let starts = ["https://www.instagram.com/sto", "https://www.instagram.com/stories/sto"];
    assert_eq!(Rules::PRESENT.fold_prefix(Kind::Url, "instagram.com/stories/sto"), starts);
}
