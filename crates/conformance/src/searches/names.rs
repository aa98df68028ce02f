//! Searches for people by what others type: parts of names, and other spellings.

use polynym_directory::{NewUser, Tenant, UserChange, Value};

use super::searching::count_found;
use crate::fixture::assertions::equal;
use crate::fixture::factory::Failure;
use crate::fixture::{Fixture, tenant};

async fn create_named(f: &Fixture, names: &[&str]) -> Result<(), Failure> {
    for name in names {
        let new = NewUser { display_name: (*name).to_owned(), ..NewUser::default() };
        f.change_new(UserChange::Create(new)).await?;
    }
    Ok(())
}

pub async fn parts_of_names_are_found(f: Fixture) -> Result<(), Failure> {
    let names = ["山田太郎", "山田 花子", "アンナ・マリア", "김우진", "김 민서", "毛利Anna"];
    create_named(&f, &names).await?;
    create_named(&f, &["Anne-Marie Duval", "Annemarie Weber", "Anne Marie"]).await?;
    create_named(&f, &["Seán O’Brien", "Sean O Brien", "SEAN OBRIEN", "Ann McDonald"]).await?;
    create_named(&f, &["علی رضایی", "علي رضايي", "كريم", "کریم"]).await?;
    for (value, count) in [
        ("太郎", 1),
        ("山田", 2),
        ("山田花子", 1),
        ("花子 山田", 1),
        ("山田 太郎", 1),
        ("田太", 1),
        ("太*", 1),
        ("*太郎", 1),
        ("*山田", 0),
        ("太山", 0),
        ("アンナマリア", 1),
        ("우진", 1),
        ("김민서", 1),
        ("김", 2),
        ("anna", 1),
        ("annemarie", 2),
        ("anne-marie", 3),
        ("anne marie", 2),
        ("annem*", 2),
        ("anne-mar*", 3),
        ("*anne-marie", 1),
        ("o brien", 3),
        ("o'brien", 3),
        ("O’BRI*", 3),
        ("obrien", 2),
        ("*o'brien", 3),
        ("mc donald", 1),
        ("علي", 2),
        ("علی رضایی", 2),
        ("رضاي*", 2),
        ("کريم", 2),
    ] {
        let text = format!("display_name:\"{value}\"");
        equal(&count_found(&f, &text).await?, &count, &text)?;
    }
    Ok(())
}

pub async fn spellings_of_texts_are_found(f: Fixture) -> Result<(), Failure> {
    for text in ["K\u{f6}ln", "Ko\u{308}ln", "Koln"] {
        let attributes = [("city".to_owned(), Value::List(vec![text.to_owned()]))].into();
        let new = NewUser { display_name: text.to_owned(), attributes, ..NewUser::default() };
        f.change_new(UserChange::Create(new)).await?;
    }
    for value in ["K\u{f6}ln", "Ko\u{308}ln", "K\u{f6}*", "Ko\u{308}*"] {
        for (condition, count) in [
            (format!("attributes.city = \"{value}\""), 2),
            (format!("attributes.city:\"{value}\""), 2),
            (format!("attributes.city != \"{value}\""), 1),
            (format!("display_name = \"{value}\""), 2),
        ] {
            equal(&count_found(&f, &condition).await?, &count, &condition)?;
        }
    }
    Ok(())
}

pub async fn ends_of_addresses_are_found_in_capitals(f: Fixture) -> Result<(), Failure> {
    for email in ["email:νικας@firma.gr", "email:νικασμα@firma.gr", "email:ας.νι@firma.gr"]
    {
        f.create(&[email]).await?;
    }
    for (value, count) in [
        ("*ΑΣ@firma.gr", 1),
        ("*Σ@FIRMA.gr", 1),
        ("ΝΙΚΑΣ*", 2),
        ("ΝΙΚΑΣ@*", 1),
        ("ΑΣ*", 1),
        ("*νι@firma.gr", 1),
    ] {
        let text = format!("identities.email = \"{value}\"");
        equal(&count_found(&f, &text).await?, &count, &text)?;
    }
    Ok(())
}

pub async fn words_that_names_have_are_known(f: Fixture) -> Result<(), Failure> {
    create_named(&f, &["Marianne Smith", "José Müller", "Иван Петров"]).await?;
    let words = ["smith", "smyth", "muller", "müller", "mar", "иван", "петров", ""];
    let words = words.map(str::to_owned);
    let mut known = f.store.search.known_words(&Tenant::DEFAULT, &words).await?;
    known.sort_unstable();
    equal(&known, &["muller", "smith", "иван", "петров"].map(str::to_owned).to_vec(), "words")?;
    let elsewhere = f.store.search.known_words(&tenant("elsewhere")?, &words).await?;
    equal(&elsewhere, &Vec::new(), "words of another tenant")?;
    let none = f.store.search.known_words(&Tenant::DEFAULT, &[]).await?;
    equal(&none, &Vec::new(), "no words")
}
