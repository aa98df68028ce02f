//! Names of columns in many languages, and as programs export them.

use unicode_normalization::UnicodeNormalization;

use super::guess::Guess;
use super::guess::Guess::{
    Email, FamilyName, FullName, GivenName, Handle, MiddleName, Phone, Region, Url,
};

/// Names of columns, in lower case and without signs, marks and digits, and the languages that have
/// them.
const NAMES: &[(Guess, &str, &[&str])] = &[
    (Email, "", &["mail", "email", "emailaddress", "emails", "mailaddress", "workemail"]),
    (Email, "", &["emailvalue", "userprincipalname", "upn", "personalemail", "primaryemail"]),
    (Email, "de", &["emailadresse", "mailadresse", "emailprivat", "emailgeschaeftlich"]),
    (Email, "fr", &["courriel", "adressemail", "adresseemail", "adresseelectronique"]),
    (Email, "es", &["correo", "correoelectronico"]),
    (Email, "it", &["postaelettronica", "indirizzoemail"]),
    (Email, "nl", &["mailadres", "emailadres"]),
    (Email, "sv", &["epost", "epostadress", "mejl", "mejladress"]),
    (Email, "pt", &["correioeletronico", "correioelectronico", "enderecodeemail"]),
    (Email, "hu", &["emailcim"]),
    (Email, "ja", &["メールアドレス", "メール", "eメール", "eメールアドレス", "電子メール"]),
    (
        Email,
        "zh",
        &["邮箱", "电子邮箱", "邮箱地址", "电子邮件", "邮件", "電子郵件", "電郵", "信箱"],
    ),
    (Email, "ko", &["이메일", "이메일주소", "메일", "메일주소", "전자우편"]),
    (
        Phone,
        "",
        &["phone", "tel", "phonenumber", "mobile", "telephone", "cell", "cellphone", "gsm"],
    ),
    (Phone, "", &["phonevalue", "mobilephone", "mobilenumber", "homephone", "workphone"]),
    (Phone, "", &["businessphone", "primaryphone", "otherphone", "telephonenumber"]),
    (Phone, "de", &["telefon", "telefonnummer", "handy", "handynummer", "mobil", "rufnummer"]),
    (Phone, "fr", &["portable", "numerodetelephone", "telephoneportable", "telportable"]),
    (Phone, "es", &["telefono", "movil", "telefonomovil"]),
    (Phone, "it", &["cellulare", "numeroditelefono"]),
    (Phone, "nl", &["telefoon", "telefoonnummer", "mobiel", "mobielnummer", "gsmnummer"]),
    (Phone, "sv", &["mobilnummer", "mobiltelefon"]),
    (Phone, "pt", &["telefone", "telemovel", "celular", "numerodetelefone", "telefonecelular"]),
    (Phone, "hu", &["telefonszam", "mobiltelefonszam"]),
    (Phone, "ja", &["電話番号", "電話", "携帯電話", "携帯番号", "携帯電話番号", "携帯"]),
    (
        Phone,
        "zh",
        &["手机", "手机号", "手机号码", "电话", "电话号码", "联系电话", "手機", "電話號碼"],
    ),
    (Phone, "ko", &["전화번호", "전화", "휴대폰", "휴대폰번호", "휴대전화", "핸드폰", "연락처"]),
    (Handle, "", &["login", "username", "userid", "nickname", "handle", "screenname"]),
    (Handle, "", &["mailnickname", "communitynickname"]),
    (Handle, "de", &["benutzername", "benutzer", "benutzerkennung", "anmeldename"]),
    (Handle, "fr", &["identifiant", "nomdutilisateur", "pseudo"]),
    (Handle, "es", &["usuario", "nombredeusuario"]),
    (Handle, "it", &["utente", "nomeutente"]),
    (Handle, "nl", &["gebruikersnaam", "gebruiker", "inlognaam"]),
    (Handle, "sv", &["anvandarnamn", "anvandare"]),
    (Handle, "pt", &["nomedeusuario", "nomedeutilizador", "utilizador"]),
    (Handle, "ja", &["ユーザー名", "ユーザ名", "ログイン名"]),
    (Handle, "zh", &["用户名", "账号", "帳號", "使用者名稱"]),
    (Handle, "ko", &["사용자이름", "사용자명", "아이디"]),
    (Url, "", &["profile", "profileurl", "linkedin", "linkedinurl", "profil"]),
    (Region, "", &["country", "countrycode", "region", "iso", "countryregion", "usagelocation"]),
    (Region, "", &["homecountryregion", "businesscountryregion", "othercountryregion"]),
    (Region, "", &["addresscountry", "mailingcountry", "mailingcountrycode", "othercountry"]),
    (Region, "de", &["land", "laendercode", "staat"]),
    (Region, "fr", &["pays", "codepays"]),
    (Region, "es", &["pais"]),
    (Region, "it", &["paese", "nazione"]),
    (Region, "nl", &["landcode"]),
    (Region, "sv", &["landskod"]),
    (Region, "hu", &["orszag"]),
    (Region, "ja", &["国", "国名", "国コード"]),
    (Region, "zh", &["国家", "国家地区", "國家"]),
    (Region, "ko", &["국가", "나라", "국적"]),
    (GivenName, "", &["firstname", "givenname", "forename"]),
    (GivenName, "de", &["vorname", "rufname"]),
    (GivenName, "fr", &["prenom"]),
    (GivenName, "es", &["nombre", "nombres"]),
    (GivenName, "nl", &["voornaam", "voornamen", "roepnaam"]),
    (GivenName, "sv", &["fornamn", "tilltalsnamn"]),
    (GivenName, "pt", &["primeironome", "nomeproprio"]),
    (GivenName, "hu", &["keresztnev", "utonev"]),
    (GivenName, "ja", &["名", "下の名前"]),
    (MiddleName, "", &["middlename", "additionalname", "tussenvoegsel", "zweitername"]),
    (FamilyName, "", &["lastname", "surname", "familyname"]),
    (FamilyName, "de", &["nachname", "familienname"]),
    (FamilyName, "fr", &["nom", "nomdefamille"]),
    (FamilyName, "es", &["apellido", "apellidos"]),
    (FamilyName, "it", &["cognome"]),
    (FamilyName, "nl", &["achternaam", "familienaam"]),
    (FamilyName, "sv", &["efternamn"]),
    (FamilyName, "pt", &["sobrenome", "apelido", "apelidos", "ultimonome"]),
    (FamilyName, "hu", &["vezeteknev", "csaladnev"]),
];
/// The names that tables of East Asia have for parts of names, and names that may be whole ones.
const OTHER: &[(Guess, &str, &[&str])] = &[
    (FamilyName, "ja", &["姓", "氏", "苗字"]),
    (FamilyName, "ko", &["성", "성씨"]),
    (FullName, "", &["name", "fullname", "displayname", "contact", "contactname", "anzeigename"]),
    (FullName, "", &["nome", "nomecompleto", "nombrecompleto", "nomcomplet", "vollername"]),
    (FullName, "nl", &["naam", "volledigenaam"]),
    (FullName, "sv", &["namn", "fullstandigtnamn"]),
    (FullName, "hu", &["nev", "teljesnev"]),
    (FullName, "ja", &["氏名", "名前", "お名前"]),
    (FullName, "zh", &["姓名", "名字"]),
    (FullName, "ko", &["이름", "성명", "성함"]),
    (Phone, "", &["recoveryphone", "phonehome", "phonework", "phonemobile"]),
    (Email, "", &["recoveryemail", "homesecondaryemail", "worksecondaryemail", "othermails"]),
];
/// Parts of the names of columns with numbers that are dialled.
const DIALLED: &[&str] = &[
    "phone",
    "telefon",
    "telefoon",
    "telefax",
    "fax",
    "pager",
    "mobil",
    "handy",
    "callback",
    "電話",
    "电话",
    "手机",
    "手機",
    "携帯",
    "전화",
    "휴대",
    "ファックス",
    "传真",
];

/// What the name of a column says: the guess, and the language of the name, which is empty for
/// names of many languages.
pub fn by_name(column: &str) -> Option<(Guess, &'static str)> {
    // Microsoft's templates have both: `User name [userPrincipalName] Required`.
    let (outside, within) = match column.split_once('[') {
        Some((before, rest)) => match rest.split_once(']') {
            Some((within, after)) => (format!("{before} {after}"), within),
            None => (column.to_owned(), ""),
        },
        None => (column.to_owned(), ""),
    };
    known(within).or_else(|| known(&outside))
}

fn known(column: &str) -> Option<(Guess, &'static str)> {
    let whole = key(&column.nfkc().collect::<String>());
    // German writes ae for ä, and Swedish a.
    let without_marks = key(&column.nfkd().filter(char::is_ascii).collect::<String>());
    let mut forms = vec![whole.clone()];
    if !has_letters_beyond(&whole) {
        forms.extend([key(&folded(column)), without_marks]);
    }
    forms.retain(|form| !form.is_empty());
    let mut rows = NAMES.iter().chain(OTHER);
    let found = rows.find(|(_, _, names)| forms.iter().any(|form| names.contains(&&**form)));
    found.map(|(guess, language, _)| (*guess, *language))
}

/// Whether a name has letters of another script than Latin, which folding drops.
fn has_letters_beyond(name: &str) -> bool {
    name.chars().any(|c| c.is_alphabetic() && u32::from(c) > 0x24f)
}

/// The letters of a name in lower case.
fn key(name: &str) -> String {
    let letters: String = name.to_lowercase().chars().filter(|c| c.is_alphabetic()).collect();
    letters.strip_suffix("required").unwrap_or(&letters).to_owned()
}

/// Whether a column has numbers that are dialled, such as those of a fax: they are no amounts.
pub fn is_dialled(column: &str) -> bool {
    let (ascii, whole) = (key(&folded(column)), column.nfkc().collect::<String>());
    DIALLED.iter().any(|part| ascii.contains(part) || whole.contains(part))
}

/// The letters and digits of a name, in lower case and without marks, with underscores between
/// words.
fn folded(name: &str) -> String {
    let lower = name.to_lowercase().replace('ä', "ae").replace('ö', "oe").replace('ü', "ue");
    let plain = lower.replace('ß', "ss").nfkd().filter(char::is_ascii).collect::<String>();
    let words = plain.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.collect::<Vec<_>>().join("_")
}

/// The name of the attribute for a column, from its own.
pub fn attribute_name(column: &str, position: usize) -> String {
    let name = folded(column);
    match name.chars().next() {
        Some(first) if first.is_ascii_alphabetic() => name,
        _ => format!("column_{}", position + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_columns_are_known_in_several_languages() {
        for (column, guess) in [
            ("E-Mail", Email),
            ("Téléphone portable", Phone),
            ("Correo electrónico", Email),
            ("Länder-Code", Region),
            ("PRÉNOM", GivenName),
            ("User ID", Handle),
            ("Sobrenome", FamilyName),
            ("Telemóvel", Phone),
            ("Tussenvoegsel", MiddleName),
            ("Achternaam", FamilyName),
            ("Förnamn", GivenName),
            ("Användarnamn", Handle),
            ("E-post", Email),
            ("Vezetéknév", FamilyName),
            ("メールアドレス", Email),
            ("Ｅメール", Email),
            ("姓", FamilyName),
            ("电话号码", Phone),
            ("国家/地区", Region),
            ("휴대폰 번호", Phone),
            ("이메일 주소", Email),
        ] {
            assert_eq!(by_name(column).map(|(guess, _)| guess), Some(guess), "{column}");
        }
        assert_eq!(by_name("Notes"), None);
        assert_eq!(attribute_name("Straße & Nr.", 0), "strasse_nr");
        assert_eq!(attribute_name("住所", 2), "column_3");
    }

    #[test]
    fn names_of_columns_of_programs_are_known() {
        for (column, guess) in [
            ("E-mail 2 Address", Email),
            ("Business Phone", Phone),
            ("Home Country/Region", Region),
            ("E-mail 1 - Value", Email),
            ("Phone 2 - Value", Phone),
            ("Address 1 - Country", Region),
            ("Additional Name", MiddleName),
            ("First Name [Required]", GivenName),
            ("Email Address [Required]", Email),
            ("Recovery Phone [MUST BE IN THE E.164 FORMAT]", Phone),
            ("userPrincipalName", Email),
            ("User name [userPrincipalName] Required", Email),
            ("Name [displayName] Required", FullName),
            ("mobilePhone", Phone),
            ("Mailing Country", Region),
            ("MobilePhone", Phone),
        ] {
            assert_eq!(by_name(column).map(|(guess, _)| guess), Some(guess), "{column}");
        }
        for column in
            ["Company Main Phone", "Assistant's Phone", "Business Fax", "Pager", "公司传真"]
        {
            assert_eq!((by_name(column), is_dialled(column)), (None, true), "{column}");
        }
        assert!(!is_dialled("Kundennr."));
    }
}
