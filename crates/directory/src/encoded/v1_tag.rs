//! The numbers of the fields that are read without decoding the message, and of the last fields
//! that this program supports (`proto/polynym/v1/types.proto`).

pub const USER_ID: u32 = 1;
pub const USER_TENANT: u32 = 2;
pub const USER_STATE: u32 = 3;
pub const USER_IDENTITIES: u32 = 5;
pub const USER_ATTRIBUTES: u32 = 6;
pub const USER_DELETE_TIME: u32 = 9;
pub const USER_PURGE_TIME: u32 = 10;
pub const USER_MERGED_INTO: u32 = 12;
pub const USER_LAST: u32 = 12;
pub const IDENTITY_IDENTIFIER: u32 = 1;
pub const IDENTITY_DISPLAY: u32 = 2;
pub const IDENTITY_LINK_TIME: u32 = 3;
pub const IDENTITY_VERIFY_TIME: u32 = 4;
pub const IDENTITY_IMPORT_TIME: u32 = 7;
pub const IDENTITY_LAST: u32 = 7;
pub const PHONE_NUMBER: u32 = 1;
pub const SOCIAL_PROVIDER: u32 = 1;
pub const SOCIAL_SUBJECT: u32 = 2;
