//! The services with known profile pages, one in a row.
//!
//! This table is part of the version of the rules: a new row, or a change of one, needs a new
//! version.

use super::site::{HOSTS, Site, has_form};

/// The canonical hosts of two services with profiles by number.
pub const LINKEDIN: &str = "www.linkedin.com";
pub const FACEBOOK: &str = "www.facebook.com";

/// The names of the first five services are case-insensitive. Sources, read in November 2026:
///
/// - LinkedIn, help page 87 "Customize your public profile URL": the part that a member chooses
///   "is case insensitive". <https://www.linkedin.com/help/linkedin/answer/a542685>: 3 to 100
///   characters; older names may have dots, and names of other scripts are escaped.
/// - GitHub, <https://docs.github.com/en/enterprise-cloud@latest/admin/managing-iam/iam-configuration-reference/username-considerations-for-external-authentication>:
///   a login is unique regardless of case; letters, digits and hyphens, and the underscore of
///   managed users; reserved names: <https://github.com/Mottie/github-reserved-names>.
/// - Facebook, <https://www.facebook.com/help/105399436216001>: letters, digits and dots; dots and
///   capitals are not significant. Some old names are shorter than the five characters of new ones.
/// - X, <https://help.x.com/en/managing-your-account/x-username-rules>: letters, digits and `_`, at
///   most 15, case-insensitive; `twitter.com` redirects to `x.com`. The page of @NAME leads to that
///   of NAME.
/// - Instagram, <https://help.instagram.com/583107688369069>: letters, digits, dots and `_`, at
///   most 30, in lower case. The page of @NAME leads to that of NAME. Threads has the same names.
/// - The others, their former domains and their pages: the clean-up of addresses of MusicBrainz,
///   <https://github.com/metabrainz/musicbrainz-server/blob/master/root/static/scripts/edit/URLCleanup.js>,
///   and for Telegram <https://core.telegram.org/api/links>.
///
/// Reserved pages and pages of profiles: the paths of each service's own menus, log-in and help.
#[rustfmt::skip]
pub const SITES: &[Site] = &[
    Site {
        host: LINKEDIN,
        drops_queries: true,
        aliases: &["linkedin.com", "m.linkedin.com"],
        prefix: "/in/",
        is_name: |name| has_form(name, 100, b"-._~%"),
        reserved: &[
            "directory", "feed", "games", "help", "home", "jobs", "learning", "legal", "me",
            "messaging", "mynetwork", "mypreferences", "nhome", "notifications", "premium",
            "psettings", "search", "settings", "share", "sharearticle", "sharing", "today",
        ],
        sections: &[
            "company", "groups", "in", "newsletters", "posts", "profile", "pub", "pulse", "school",
            "services", "showcase",
        ],
        domains: &["linkedin.com"],
        has_language_hosts: true,
        also: &["/comm/in/", "/mwlite/in/", "/mwlite/profile/in/"],
        pages: None,
        posts: &["embed/feed/update", "feed/update", "posts/*", "pulse/*"],
        ..HOSTS
    },
    Site {
        host: "github.com",
        drops_queries: true,
        aliases: &["www.github.com"],
        prefix: "/",
        is_name: |name| has_form(name, 39, b"-_") && !name.starts_with('-'),
        reserved: &[
            "about", "account", "codespaces", "contact", "copilot", "customer-stories", "dashboard",
            "enterprise", "events", "explore", "features", "home", "issues", "logos", "marketplace",
            "new", "notifications", "oauth", "password_reset", "pricing", "pulls", "search",
            "security", "settings", "share", "site", "team", "trending", "watching",
        ],
        sections: &[
            "apps", "collections", "enterprises", "organizations", "orgs", "readme", "sponsors",
            "stars", "topics", "users",
        ],
        domains: &["github.com"],
        ..HOSTS
    },
    Site {
        host: FACEBOOK,
        drops_queries: true,
        aliases: &[
            "facebook.com", "m.facebook.com", "mbasic.facebook.com", "touch.facebook.com",
            "web.facebook.com", "fb.com", "www.fb.com",
        ],
        prefix: "/",
        has_significant_dots: false,
        is_name: |name| has_form(name, 50, b"."),
        reserved: &[
            "ads", "bookmarks", "business", "careers", "friends", "gaming", "hashtag", "help",
            "home", "home.php", "legal", "login", "login.php", "me", "memories", "messages",
            "notifications", "permalink.php", "photo", "photo.php", "photos.php", "policies",
            "privacy", "public", "r.php", "recover", "reg", "saved", "search", "search.php",
            "settings", "share", "story.php", "video.php", "watch",
        ],
        sections: &[
            "directory", "events", "fundraisers", "games", "groups", "live", "marketplace", "media",
            "notes", "p", "pages", "people", "pg", "photos", "reel", "reels", "stories", "videos",
        ],
        domains: &["facebook.com", "fb.com"],
        has_language_hosts: true,
        also: &["/pg/"],
        numbered: &["groups/*/user/#", "p/-#", "pages/*/#", "people/*/#"],
        pages: Some(&[
            "about", "about_contact_and_basic_info", "about_details",
            "about_family_and_relationships", "about_life_events", "about_overview",
            "about_places", "about_profile_transparency", "about_work_and_education", "community",
            "events", "followers", "following", "friends", "friends_mutual", "groups", "info",
            "likes", "map", "mentions", "music", "notes", "photos", "photos_albums", "photos_all",
            "photos_by", "photos_of", "photos_stream", "posts", "reels", "reels_tab", "reviews",
            "shop", "sports", "timeline", "videos", "videos_by", "videos_of",
        ]),
        posts: &[
            "*/photos/*", "*/posts/*", "*/reel/*", "*/videos/*", "groups/*/permalink/*",
            "groups/*/posts/*", "media/set", "reel/*", "reels/*", "stories/*",
        ],
        ..HOSTS
    },
    Site {
        host: "x.com",
        drops_queries: true,
        aliases: &[
            "www.x.com", "mobile.x.com", "twitter.com", "www.twitter.com", "mobile.twitter.com",
            "m.twitter.com",
        ],
        prefix: "/",
        is_name: |name| has_form(name, 15, b"_"),
        has_at: true,
        reserved: &[
            "about", "bookmarks", "compose", "download", "explore", "follower_requests", "hashtag",
            "home", "jobs", "messages", "notifications", "privacy", "search", "search-advanced",
            "settings", "signup", "tos", "who_to_follow",
        ],
        sections: &["communities", "i", "lists", "statuses"],
        domains: &["x.com", "twitter.com"],
        pages: Some(&[
            "about", "affiliates", "articles", "creator-subscriptions", "followers",
            "followers_you_follow", "following", "header_photo", "highlights", "likes", "lists",
            "media", "moments", "photo", "superfollows", "topics", "verified_followers",
            "with_replies",
        ]),
        posts: &[
            "*/article/*", "*/status/*", "*/statuses/*", "i/articles/*", "i/broadcasts/*",
            "i/events/*", "i/spaces/*", "i/web/status/*", "statuses/*",
        ],
        ..HOSTS
    },
    Site {
        host: "www.instagram.com",
        drops_queries: true,
        aliases: &["instagram.com", "m.instagram.com"],
        prefix: "/",
        is_name: |name| has_form(name, 30, b"._"),
        has_at: true,
        reserved: &[
            "about", "api", "developer", "direct", "directory", "emails", "explore", "home",
            "legal", "login", "press", "privacy", "search", "session", "settings", "share", "web",
        ],
        sections: &["p", "reel", "reels", "stories", "tv"],
        domains: &["instagram.com"],
        also: &["/stories/"],
        pages: Some(&[
            "channel", "feed", "followers", "following", "guides", "highlights", "igtv", "live",
            "photos_of_you", "reels", "related_profiles", "reposts", "saved", "similar_accounts",
            "tagged",
        ]),
        posts: &["*/p/*", "*/reel/*", "*/tv/*", "p/*", "reel/*", "reels/*", "stories/*/*", "tv/*"],
        ..HOSTS
    },
    Site {
        host: "www.threads.com",
        prefix: "/@",
        is_name: |name| has_form(name, 30, b"._"),
        reserved: &["activity", "home", "login", "search", "settings"],
        domains: &["threads.com", "threads.net"],
        also: &["/%40"],
        pages: Some(&["media", "replies", "reposts"]),
        posts: &["*/post/*", "t/*"],
        ..HOSTS
    },
    Site {
        host: "www.tiktok.com",
        prefix: "/@",
        is_name: |name| has_form(name, 24, b"._"),
        reserved: &["explore", "following", "foryou", "live", "login", "search", "upload"],
        domains: &["tiktok.com"],
        also: &["/%40"],
        pages: Some(&["live"]),
        posts: &["*/photo/*", "*/video/*", "v/*"],
        ..HOSTS
    },
    Site {
        host: "www.youtube.com",
        prefix: "/@",
        is_name: |name| has_form(name, 90, b"-._%"),
        reserved: &["account", "feed", "gaming", "premium", "results"],
        domains: &["youtube.com"],
        has_language_hosts: true,
        also: &["/%40"],
        folders: &["/c/", "/channel/", "/user/"],
        pages: Some(&[
            "about", "channels", "community", "courses", "discussion", "featured", "join", "live",
            "membership", "playlists", "podcasts", "posts", "releases", "shorts", "store",
            "streams", "videos",
        ]),
        posts: &["clip/*", "embed/*", "live/*", "playlist", "post/*", "shorts/*", "v/*", "watch"],
        ..HOSTS
    },
    Site {
        host: "bsky.app",
        prefix: "/profile/",
        is_name: |name| has_form(name, 253, b"-.:"),
        reserved: &["feeds", "messages", "notifications", "search", "settings"],
        domains: &["bsky.app"],
        pages: Some(&["followers", "follows", "known-followers"]),
        posts: &["profile/*/post/*"],
        ..HOSTS
    },
    Site {
        host: "www.reddit.com",
        aliases: &["new.reddit.com", "np.reddit.com", "old.reddit.com"],
        prefix: "/user/",
        is_name: |name| has_form(name, 20, b"-_"),
        reserved: &["login", "message", "search", "settings", "submit"],
        domains: &["reddit.com"],
        has_language_hosts: true,
        also: &["/u/"],
        pages: Some(&[
            "about", "comments", "downvoted", "gilded", "hidden", "overview", "saved", "submitted",
            "upvoted",
        ]),
        posts: &["*/*/comments/*", "comments/*"],
        ..HOSTS
    },
    Site {
        host: "www.twitch.tv",
        prefix: "/",
        is_name: |name| has_form(name, 25, b"_"),
        reserved: &[
            "directory", "downloads", "inventory", "jobs", "login", "search", "settings", "signup",
            "subscriptions", "turbo", "wallet",
        ],
        sections: &["p", "team", "videos"],
        domains: &["twitch.tv", "twitch.com"],
        pages: Some(&["about", "clips", "followers", "following", "schedule", "videos"]),
        posts: &["*/clip/*", "*/v/*", "*/video/*", "videos/*"],
        ..HOSTS
    },
    Site {
        host: "www.pinterest.com",
        prefix: "/",
        is_name: |name| has_form(name, 30, b"_"),
        reserved: &["business", "ideas", "login", "search", "settings", "today"],
        sections: &["pin"],
        domains: &["pinterest.com", "pinterest."],
        has_language_hosts: true,
        pages: Some(&["_created", "_saved", "boards", "followers", "following", "likes", "pins"]),
        posts: &["pin/*"],
        ..HOSTS
    },
    Site {
        host: "t.me",
        prefix: "/",
        is_name: |name| has_form(name, 32, b"_"),
        reserved: &[
            "addemoji", "addstickers", "addtheme", "bg", "confirmphone", "invoice", "iv",
            "joinchat", "login", "proxy", "setlanguage", "share", "socks",
        ],
        sections: &["c", "s"],
        domains: &["t.me", "telegram.me", "telegram.dog"],
        also: &["/s/"],
        posts: &["*/#", "c/*/#", "s/*/#"],
        ..HOSTS
    },
    Site {
        host: "www.last.fm",
        prefix: "/user/",
        is_name: |name| has_form(name, 15, b"-_"),
        reserved: &["home", "join", "login", "search", "settings"],
        domains: &["last.fm", "lastfm.com", "lastfm."],
        has_language_paths: true,
        pages: None,
        keeps_case: true,
        ..HOSTS
    },
    Site {
        host: "www.imdb.com",
        prefix: "/name/",
        is_name: |name| has_form(name, 12, b"") && name.starts_with("nm"),
        reserved: &["find", "registration", "search"],
        domains: &["imdb.com", "imdb."],
        has_language_paths: true,
        pages: None,
        ..HOSTS
    },
    Site { host: "myspace.com", domains: &["myspace.com", "myspace.de", "myspace.fr"], ..HOSTS },
    Site { host: "ra.co", domains: &["ra.co", "residentadvisor.net"], ..HOSTS },
    Site { host: "vgmdb.net", domains: &["vgmdb.net", "vgmdb.com"], ..HOSTS },
    Site { host: "vk.com", domains: &["vk.com", "vkontakte.ru"], ..HOSTS },
    Site { host: ".blogspot.com", domains: &[".blogspot."], ..HOSTS },
];
