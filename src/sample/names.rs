//! Names of people in eight scripts, with a spelling in Latin letters for addresses.

/// A name in its script, and in Latin letters.
pub type Name = (&'static str, &'static str);

/// The first and last names of one script.
pub struct Script {
    pub first: [Name; 8],
    pub last: [Name; 8],
    pub country: &'static str,
    pub language: &'static str,
    /// Whether the last name comes first, without a space.
    pub is_reversed: bool,
}

impl Script {
    /// Whether it is written from right to left.
    pub fn is_right_to_left(&self) -> bool {
        matches!(self.language, "ar" | "he")
    }
}

#[rustfmt::skip]
pub const SCRIPTS: [Script; 8] = [
    Script {
        first: [("Anna", "anna"), ("José", "jose"), ("Chloé", "chloe"), ("Jürgen", "juergen"), ("Zoë", "zoe"), ("Łukasz", "lukasz"), ("Grace", "grace"), ("Ayşe", "ayse")],
        last: [("Smith", "smith"), ("Núñez", "nunez"), ("Dubois", "dubois"), ("Groß", "gross"), ("Okafor", "okafor"), ("Wójcik", "wojcik"), ("Lindqvist", "lindqvist"), ("Yılmaz", "yilmaz")],
        country: "US", language: "en", is_reversed: false,
    },
    Script {
        first: [("Иван", "ivan"), ("Ольга", "olga"), ("Дмитрий", "dmitry"), ("Наталья", "natalya"), ("Сергей", "sergey"), ("Елена", "elena"), ("Павел", "pavel"), ("Мария", "maria")],
        last: [("Петров", "petrov"), ("Смирнов", "smirnov"), ("Кузнецов", "kuznetsov"), ("Попов", "popov"), ("Соколов", "sokolov"), ("Лебедев", "lebedev"), ("Новиков", "novikov"), ("Морозов", "morozov")],
        country: "RU", language: "ru", is_reversed: false,
    },
    Script {
        first: [("Μαρία", "maria"), ("Γιώργος", "giorgos"), ("Ελένη", "eleni"), ("Νίκος", "nikos"), ("Σοφία", "sofia"), ("Κώστας", "kostas"), ("Άννα", "anna"), ("Δημήτρης", "dimitris")],
        last: [("Παπαδοπούλου", "papadopoulou"), ("Νικολάου", "nikolaou"), ("Γεωργίου", "georgiou"), ("Ιωάννου", "ioannou"), ("Δημητρίου", "dimitriou"), ("Βασιλείου", "vasileiou"), ("Αντωνίου", "antoniou"), ("Χρήστου", "christou")],
        country: "GR", language: "el", is_reversed: false,
    },
    Script {
        first: [("يوسف", "youssef"), ("فاطمة", "fatima"), ("أحمد", "ahmed"), ("ليلى", "layla"), ("عمر", "omar"), ("سارة", "sara"), ("خالد", "khaled"), ("مريم", "maryam")],
        last: [("حداد", "haddad"), ("خوري", "khoury"), ("منصور", "mansour"), ("نجار", "najjar"), ("صالح", "saleh"), ("رحمن", "rahman"), ("عباس", "abbas"), ("قاسم", "qasim")],
        country: "EG", language: "ar", is_reversed: false,
    },
    Script {
        first: [("נועה", "noa"), ("דוד", "david"), ("מאיה", "maya"), ("יוסי", "yossi"), ("תמר", "tamar"), ("איתן", "eitan"), ("רחל", "rachel"), ("אבי", "avi")],
        last: [("לוי", "levi"), ("כהן", "cohen"), ("מזרחי", "mizrahi"), ("פרץ", "peretz"), ("ביטון", "biton"), ("אברהם", "avraham"), ("פרידמן", "friedman"), ("שפירא", "shapira")],
        country: "IL", language: "he", is_reversed: false,
    },
    Script {
        first: [("अनीता", "anita"), ("राहुल", "rahul"), ("प्रिया", "priya"), ("विजय", "vijay"), ("सुनीता", "sunita"), ("अमित", "amit"), ("कविता", "kavita"), ("रवि", "ravi")],
        last: [("शर्मा", "sharma"), ("वर्मा", "verma"), ("गुप्ता", "gupta"), ("सिंह", "singh"), ("पटेल", "patel"), ("जोशी", "joshi"), ("मिश्रा", "mishra"), ("यादव", "yadav")],
        country: "IN", language: "hi", is_reversed: false,
    },
    Script {
        first: [("花子", "hanako"), ("太郎", "taro"), ("美咲", "misaki"), ("健", "ken"), ("小明", "xiaoming"), ("丽", "li"), ("伟", "wei"), ("由美", "yumi")],
        last: [("田中", "tanaka"), ("佐藤", "sato"), ("鈴木", "suzuki"), ("王", "wang"), ("李", "lee"), ("高橋", "takahashi"), ("陈", "chen"), ("山本", "yamamoto")],
        country: "JP", language: "ja", is_reversed: true,
    },
    Script {
        first: [("민준", "minjun"), ("서연", "seoyeon"), ("지훈", "jihoon"), ("수진", "sujin"), ("영호", "youngho"), ("하은", "haeun"), ("도윤", "doyun"), ("유나", "yuna")],
        last: [("김", "kim"), ("이", "yi"), ("박", "park"), ("최", "choi"), ("정", "jung"), ("강", "kang"), ("조", "cho"), ("윤", "yoon")],
        country: "KR", language: "ko", is_reversed: true,
    },
];
